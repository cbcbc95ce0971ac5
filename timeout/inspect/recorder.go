package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	maxTools   = 500
	maxEnded   = 1000
	maxTracked = 2000

	sampleEvery = time.Second
	// sampleShare limits sampling to about 1/sampleShare of the time.
	sampleShare = 50
)

// A recorder records the executions of the process, within the bounds above.
type recorder struct {
	sampling atomic.Bool // whether a timer is set for the next sample, or a sample is being taken
	stop     func()      // ends the recording

	mu     sync.Mutex
	since  time.Time
	tools  map[string]*toolStats
	others uint64 // runs of tools beyond maxTools
	ended  []ended
	next   int // once ended is full, the index of its oldest element, which is replaced next
	tracks map[uint64]*track
}

func newRecorder() *recorder {
	return &recorder{since: time.Now(), tools: make(map[string]*toolStats), tracks: make(map[uint64]*track)}
}

// theRecorder returns the recorder of the process. The first call creates it and starts the recording.
var theRecorder = sync.OnceValue(func() *recorder {
	r := newRecorder()
	r.stop = timeout.Watch(timeout.Hooks{Started: r.started, Finished: r.finished})
	return r
})

// started is the Started hook. It starts the sampling if it is not in progress. While it is, started only reads a flag.
func (r *recorder) started(context.Context, timeout.Snapshot) {
	if !r.sampling.Load() && r.sampling.CompareAndSwap(false, true) {
		time.AfterFunc(sampleEvery, r.sample)
	}
}

// sample samples the running executions and sets the timer again, unless there are none. Rejected: a goroutine that
// sleeps. It would remain at the end of every testing/synctest bubble of a program with the page, and would count as a
// deadlock there.
func (r *recorder) sample() {
	begun := time.Now()
	running := timeout.Running()
	if len(running) == 0 {
		r.sampling.Store(false)
		// An execution that started before the Store has not started the sampling, because the flag was set.
		if len(timeout.Running()) > 0 && r.sampling.CompareAndSwap(false, true) {
			time.AfterFunc(sampleEvery, r.sample)
		}
		return
	}
	r.look(running)
	time.AfterFunc(max(sampleEvery, sampleShare*time.Since(begun)), r.sample)
}

// look adds a mark to the timeline of each execution in running that has one or for which there is room, and drops
// the timelines of all others.
func (r *recorder) look(running []*timeout.Execution) {
	alive := make(map[uint64]bool, len(running))
	for _, x := range running {
		s := x.Snapshot()
		if s.State == timeout.StateAbandoned || s.State == timeout.StateEnded {
			continue // finished ends its timeline
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
	defer r.mu.Unlock()
	maps.DeleteFunc(r.tracks, func(id uint64, _ *track) bool { return !alive[id] })
}

func (r *recorder) finished(_ context.Context, s timeout.Snapshot) {
	e := newEnded(&s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tracks[e.ID]; t != nil {
		e.marks = t.marks
		delete(r.tracks, e.ID)
	}
	e.marks = append(e.marks, markOf(&s))
	stats := r.tools[e.Tool]
	if stats == nil {
		e.Tool = strings.Clone(e.Tool) // a copy, because the string may be part of a larger one
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

// recent returns the recorded ended executions for which the function which returns true, the newest first, but no
// more than most. It holds the lock, for which every run waits at its end, and so it copies nothing else.
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

// withID returns the recorded ended execution with the given ID, or nil.
func (r *recorder) withID(id uint64) *ended {
	if found := r.recent(1, func(e *ended) bool { return e.ID == id }); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// figures returns the figures of all recorded tools, and the number of runs of tools beyond maxTools. It locks for
// the copy of each tool separately, so that a run at its end waits for one copy at most.
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

// timelineOf returns the timeline of an execution that is running or among the recorded ended ones. The result is
// false for any other. The marks are a second apart, or more in a long execution.
func timelineOf(id uint64) (timeline, bool) {
	r := theRecorder()
	if x := running(id); x != nil {
		marks := r.marksOf(id) // before the Snapshot, whose mark is the last
		s := x.Snapshot()
		if s.State < timeout.StateAbandoned {
			w := newRow(&s)
			t := w.timeline(append(marks, markOf(&s)))
			t.Outcome = ""
			return t, true
		}
	}
	if e := r.withID(id); e != nil {
		return e.timeline(e.marks), true
	}
	return timeline{}, false
}

// marksOf returns a copy of the marks of a running execution.
func (r *recorder) marksOf(id uint64) []mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tracks[id]; t != nil {
		return slices.Clone(t.marks)
	}
	return nil
}

// running returns the execution in progress with the given ID, or nil.
func running(id uint64) *timeout.Execution {
	for _, x := range timeout.Running() {
		if x.ID() == id {
			return x
		}
	}
	return nil
}
