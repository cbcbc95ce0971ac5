package transcript

import (
	"context"
	"regexp"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

const (
	// scanBytes is how much is searched at a time.
	scanBytes = 64 << 10
	// lateSearch bounds the search for a caller whose context is done.
	lateSearch = 100 * time.Millisecond
)

// A Wake says why a wait is over.
type Wake int

// The reasons. If there are several, Wait returns the first of them in this order.
const (
	Match Wake = iota + 1
	Output
	Ready
	End
	Input
	Caller
	Silence
)

// An Until says what ends a wait.
type Until struct {
	From    int64 // output after this position is new
	Output  bool
	Silence time.Duration
	Match   *regexp.Regexp
	Input   bool
	Ready   bool
}

// Wait waits until something that until names has happened, the job has ended, or ctx is done.
//
// Output that was written before the end comes before it: if a job writes the awaited text and ends
// at once, the wait always ends in the same way, whichever goroutine is first.
//
// Output is a heartbeat for the execution of ctx.
func (l *Log) Wait(ctx context.Context, until Until) Wake {
	search := searcher{next: max(until.From, 0)}
	if until.Match != nil {
		give := ctx
		if ctx.Err() != nil { // a caller without time asks what has happened already
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

// isReady reports whether the job has said that it is ready.
func (l *Log) isReady() bool {
	select {
	case <-l.Ready:
		return true
	default:
		return false
	}
}

// A searcher looks for a pattern in the lines of a log, each byte of which it reads once: in each line as it is when a
// line feed ends it, and in what stands on the screen whenever everything has been read.
type searcher struct {
	pattern *matcher // nil if there is nothing to look for
	next    int64    // position
	screen  *screen.Screen
	found   bool
}

// run searches what was written since the last run, up to a position: a search that goes on while a command writes
// might never end. all reports whether the search has reached that position, and was not given up.
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
