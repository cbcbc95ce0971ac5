package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	maxTools   = 500
	maxEnded   = 1000
	maxTracked = 2000

	sampleEvery = time.Second
	// sampleShare is which part of the time may go into looking at what runs.
	sampleShare = 50
)

// An ended execution is remembered by what its last hook has said, as text: what an error or
// a detail holds may be large, and is not ours to keep.
type ended struct {
	timeout.Snapshot
	outcome   string
	abandoned bool
	err       string
	detail    string
	stack     string
	marks     []mark

	wouldStop   string // the limit that would have stopped it, if it was only observed
	wouldStopAt millis
}

const (
	maxText  = 500      // of a name, an error or a detail
	maxStack = 16 << 10 // of the stack of one that was stopped
)

func newEnded(s timeout.Snapshot) ended {
	e := ended{outcome: outcomeOf(s.Err), detail: detailText(s.Detail), stack: string(s.Stack[:min(len(s.Stack), maxStack)])}
	if s.Err != nil {
		e.err = strings.Clone(cut(s.Err.Error(), maxText)) // it may be part of something large
		e.abandoned = wasAbandoned(s.Err)
	}
	if s.Observed != nil {
		e.wouldStop, e.wouldStopAt = limitOf(s.Observed), millis(s.Observed.Elapsed)
	}
	s.Err, s.Detail, s.Stack, s.Observed = nil, nil, nil, nil
	e.Snapshot = s
	return e
}

func wasAbandoned(err error) bool {
	var stop *timeout.Error
	return errors.As(err, &stop) && stop.Abandoned
}

// detailText renders a detail. It may panic, as anything that a program prints.
func detailText(detail any) (text string) {
	if detail == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			text = "(cannot be shown)"
		}
	}()
	if n, ok := detail.(float64); ok {
		return human.Number(n)
	}
	return cut(fmt.Sprint(detail), maxText)
}

// cut is the beginning of s, whole characters of it.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// A recorder remembers what the executions of the process have done, within bounds.
type recorder struct {
	sampling atomic.Bool  // a timer is set to look at what runs
	due      atomic.Int64 // when it fires, in Unix nanoseconds
	stop     func()       // ends the recording

	mu     sync.Mutex
	since  time.Time
	tools  map[string]*toolStats
	others uint64 // runs of tools beyond maxTools
	ended  []ended
	next   int // where in ended the next one goes, once it is full
	tracks map[uint64]*track
}

func newRecorder() *recorder {
	return &recorder{since: time.Now(), tools: make(map[string]*toolStats), tracks: make(map[uint64]*track)}
}

// theRecorder is that of the process. It begins with the first use.
var theRecorder = sync.OnceValue(func() *recorder {
	r := newRecorder()
	r.stop = timeout.Watch(timeout.Hooks{Started: r.started, Finished: r.finished})
	return r
})

// started is all that a run costs while it goes on.
func (r *recorder) started(context.Context, timeout.Snapshot) {
	if !r.sampling.Load() && r.sampling.CompareAndSwap(false, true) {
		r.sampleIn(sampleEvery)
	}
}

// sampleIn sets the timer. Rejected: a goroutine that sleeps, which would be left over, and
// so a deadlock, at the end of every testing/synctest bubble of a program that has the page.
func (r *recorder) sampleIn(d time.Duration) {
	r.due.Store(time.Now().Add(d).UnixNano())
	time.AfterFunc(d, r.sample)
}

// sample looks at what runs, once a second, until nothing does.
func (r *recorder) sample() {
	begun := time.Now()
	running := timeout.Running()
	if len(running) == 0 {
		r.sampling.Store(false)
		// What has started before that has seen it set, and nobody looks at it.
		if len(timeout.Running()) > 0 && r.sampling.CompareAndSwap(false, true) {
			r.sampleIn(sampleEvery)
		}
		return
	}
	r.look(running)
	r.sampleIn(max(sampleEvery, sampleShare*time.Since(begun)))
}

// revive sets the timer anew if it has gone with the bubble of a test in which it was set.
func (r *recorder) revive() {
	due := r.due.Load()
	if late := time.Since(time.Unix(0, due)); r.sampling.Load() && late > time.Minute && r.due.CompareAndSwap(due, time.Now().UnixNano()) {
		r.sampleIn(sampleEvery)
	}
}

// look adds a mark to the timeline of each execution, as far as there is room for it.
func (r *recorder) look(running []*timeout.Execution) {
	alive := make(map[uint64]bool, len(running))
	for _, x := range running {
		s := x.Snapshot()
		if s.State == timeout.StateAbandoned || s.State == timeout.StateEnded {
			continue // finished has taken its timeline, or will
		}
		alive[s.ID] = true
		r.mu.Lock()
		t := r.tracks[s.ID]
		if t == nil && len(r.tracks) < maxTracked {
			t = new(track)
			r.tracks[s.ID] = t
		}
		if t != nil {
			t.add(markOf(&s))
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	for id := range r.tracks {
		if !alive[id] {
			delete(r.tracks, id)
		}
	}
	r.mu.Unlock()
}

func (r *recorder) finished(_ context.Context, s timeout.Snapshot) {
	e := newEnded(s)
	e.Tool = cut(e.Tool, maxText)
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tracks[e.ID]; t != nil {
		e.marks = t.marks
		delete(r.tracks, e.ID)
	}
	stats := r.tools[e.Tool]
	if stats == nil {
		e.Tool = strings.Clone(e.Tool) // it may be part of something large
		if len(r.tools) < maxTools {
			stats = &toolStats{name: e.Tool}
			r.tools[e.Tool] = stats
		}
	}
	if stats == nil {
		r.others++
	} else {
		e.Tool = stats.name
		stats.add(&e)
	}
	if len(r.ended) < maxEnded {
		r.ended = append(r.ended, e)
		return
	}
	r.ended[r.next] = e
	r.next = (r.next + 1) % maxEnded
}

// recent are the last executions that have ended and that which accepts, at most so many, the
// newest first. Every run that ends waits for it, so that it copies nothing else.
func (r *recorder) recent(most int, which func(*ended) bool) []ended {
	var all []ended
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ended {
		if e := &r.ended[(r.next+len(r.ended)-1-i)%len(r.ended)]; len(all) < most && which(e) {
			all = append(all, *e)
		}
	}
	return all
}

// withID is the execution that has ended with an id, or nil.
func (r *recorder) withID(id uint64) *ended {
	if found := r.recent(1, func(e *ended) bool { return e.ID == id }); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// figures returns the figures of all tools, and how many runs were of tools beyond maxTools.
// Each is copied on its own, so that the runs that end meanwhile wait for one copy at most.
func (r *recorder) figures() (all []toolStats, others uint64) {
	r.mu.Lock()
	names := slices.Collect(maps.Keys(r.tools))
	others = r.others
	r.mu.Unlock()
	all = make([]toolStats, len(names))
	for i, name := range names {
		r.mu.Lock()
		all[i] = *r.tools[name]
		r.mu.Unlock()
	}
	return all, others
}

func (e *ended) timeline() timeline {
	return timeline{Tool: e.Tool, ID: e.ID, Elapsed: e.Elapsed, Limits: e.Limits, Outcome: e.outcome,
		Marks: append(e.marks[:len(e.marks):len(e.marks)], markOf(&e.Snapshot))}
}

// timelineOf returns the timeline of an execution that runs, or that is one of the last that
// have ended; false where it is neither. See [timeout.Execution.ID]. Its marks are a second
// apart or, of one that takes long, some more.
func timelineOf(id uint64) (timeline, bool) {
	r := theRecorder()
	if x := timeout.ByID(id); x != nil {
		s := x.Snapshot()
		if s.State < timeout.StateAbandoned {
			r.mu.Lock()
			defer r.mu.Unlock()
			t := timeline{Tool: cut(s.Tool, maxText), ID: s.ID, Elapsed: s.Elapsed, Limits: s.Limits}
			if recorded := r.tracks[id]; recorded != nil {
				t.Marks = append(t.Marks, recorded.marks...)
			}
			t.Marks = append(t.Marks, markOf(&s))
			return t, true
		}
	}
	if e := r.withID(id); e != nil {
		return e.timeline(), true
	}
	return timeline{}, false
}
