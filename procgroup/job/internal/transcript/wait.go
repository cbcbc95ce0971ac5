package transcript

import (
	"context"
	"regexp"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

const (
	// scanBytes is the number of bytes that are searched at a time.
	scanBytes = 64 << 10
	// lateSearch bounds the search if the caller's context is done before it begins.
	lateSearch = 100 * time.Millisecond
)

// A Wake is the event that ended a wait; see job.Wake.
type Wake string

// The events. If several have happened, Wait returns the first of them in this order. As an exception, Caller comes
// right after Output if the search for Match was ended before it was complete.
const (
	Match   Wake = "match"
	Output  Wake = "output"
	Ready   Wake = "ready"
	End     Wake = "end"
	Input   Wake = "input"
	Caller  Wake = "caller"
	Silence Wake = "silence"
)

// An Until selects the events that end a wait; see job.Until.
type Until struct {
	From    int64 // output after this position is new, for Output and Match; a negative one counts as 0
	Output  bool
	Silence time.Duration
	Match   *regexp.Regexp
	Input   bool
	Ready   bool
}

// Wait waits until an event that until selects has happened, the job has ended, or ctx is done.
//
// Output that was written before the end of the job wins over the end: if a job writes the awaited text and ends at
// once, Wait always returns Match, whichever goroutine runs first.
//
// Output during the wait is a heartbeat for the execution of ctx.
func (l *Log) Wait(ctx context.Context, until Until) Wake {
	until.From = max(until.From, 0) // as in Read
	search := searcher{next: until.From}
	if until.Match != nil {
		give := ctx
		if ctx.Err() != nil { // the caller asks which events have happened already
			var stop context.CancelFunc
			give, stop = context.WithTimeout(context.Background(), lateSearch)
			defer stop()
		}
		m := newMatcher(until.Match, give.Done())
		search.pattern = &m
	}
	begun := time.Now()
	var seen int64 = -1
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.mu.Lock()
		total, last, ended := l.total, l.last, l.ended
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()

		if seen >= 0 && total > seen {
			heartbeat.Beat(ctx)
		}
		seen = total
		found, all := search.run(l, total)
		switch {
		case found:
			return Match
		case until.Output && total > until.From:
			return Output
		case !all:
			return Caller
		case until.Ready && l.isReady():
			return Ready
		case ended:
			return End
		case until.Input && l.Input != nil && l.Input().Certain:
			return Input
		case ctx.Err() != nil:
			return Caller
		}
		var due <-chan time.Time
		if until.Silence > 0 {
			if last.Before(begun) {
				last = begun
			}
			silent := time.Until(last.Add(until.Silence))
			if silent <= 0 {
				return Silence
			}
			timer.Reset(silent)
			due = timer.C
		}
		var ready <-chan struct{}
		if until.Ready {
			ready = l.Ready
		}
		select {
		case <-changed:
		case <-ready:
		case <-due:
		case <-ctx.Done():
		}
	}
}

// isReady reports whether l.Ready is closed.
func (l *Log) isReady() bool {
	select {
	case <-l.Ready:
		return true
	default:
		return false
	}
}

// A searcher searches the lines of a log for a pattern, and reads each byte of the log once. It searches each line when
// a line feed ends it, and the changed lines of the screen after each piece of at most scanBytes.
type searcher struct {
	pattern *matcher       // nil if there is no pattern
	next    int64          // the position up to which the log has been read
	screen  *screen.Screen // nil before the first piece
	found   bool
}

// run searches the output from the end of the last run up to the position to. It ignores later output, because a search
// that follows a busy command might never end. all is false if the search was ended before it reached to.
func (s *searcher) run(l *Log, to int64) (found, all bool) {
	for s.pattern != nil && s.next < to {
		if s.pattern.over() {
			return false, false
		}
		p := l.Read(s.next, int(min(to-s.next, scanBytes)))
		if s.screen == nil || p.Dropped > 0 {
			s.screen = screen.New(l.shown(p.Next > int64(len(p.Data))))
			s.screen.Finished = s.match
			s.screen.Mark()
		}
		s.next = p.Next
		s.screen.Write(p.Data)
		s.screen.Changed(s.match)
		if s.found {
			return true, true
		}
		if s.pattern.cut {
			return false, false
		}
		s.screen.Mark()
	}
	return false, true
}

func (s *searcher) match(line []byte) { s.found = s.found || s.pattern.match(line) }
