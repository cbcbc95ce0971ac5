package procgroup

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// looksPerLimit is how many times per idle limit work is measured. A look takes place at the next
// instant of a grid that is at least half a step away. So the first look of a silence is at most
// 1½ steps after its beginning, which is the quarter of the limit that Activity promises.
const looksPerLimit = 6

// steadyLooks is the number of consecutive looks that must find a process running for the tree to be at
// work all the time. Beside 16 busy loops on 2 cores, a shell that polls every 0.2 s was ready to run at a
// third of the looks, and find -exec at each of 56.
const steadyLooks = 3

// A workWatch measures one kind of work of a tree while there is no output.
//
// It looks at the instants of a grid that all watches with the same idle limit share, so that they
// share one reading of all processes. If the limit expires and the last look on the grid was late,
// because the machine is busy, the engine requests another look.
type workWatch struct {
	activity Activity // with one kind of work
	silence  *silence
	cell     *pulse.Cell // of the command's execution
	step     time.Duration
	meter    work.Meter
	probe    *pulse.Probe

	over       atomic.Bool
	lookWanted atomic.Bool   // another look is wanted after the one in progress
	begun      atomic.Int64  // when the look in progress began, in nanoseconds since 1970; 0 if there is none
	turn       chan struct{} // held during a look; guards looked, read and ran

	setting sync.Mutex // held while timer is set, and never during a look
	timer   pulse.Timer

	looked       time.Duration // when the last successful look began
	read         time.Duration // when that look ended
	runningLooks int           // number of consecutive looks, up to that one, that found a process running
}

// watches are the watches of one tree, one for each kind of work. They are separate because the I/O of
// processes is read by separate threads, which may get no processor for seconds on a busy machine; a
// tree that uses processor time must not be taken for idle because of that.
type watches []*workWatch

// startWatches starts a watch for each kind of work in a. It starts none if there is no idle limit.
func startWatches(ctx context.Context, a Activity, meter func(io bool) work.Meter) (all watches) {
	cell := pulse.Of(ctx)
	idle := cell.SmallestIdle()
	if idle == 0 {
		return nil
	}
	silence := &silence{cell: cell}
	for _, kind := range []Activity{{CPU: a.CPU, CPURate: a.CPURate}, {IO: a.IO}} {
		if !kind.isSet() {
			continue
		}
		w := &workWatch{activity: kind, silence: silence, cell: cell, step: max(idle/looksPerLimit, time.Millisecond), meter: meter(kind.IO), turn: make(chan struct{}, 1)}
		all = append(all, w)
		w.start()
	}
	return all
}

// end stops the watches: no look begins, and a look in progress has no effect. It does not wait for
// such a look.
func (all watches) end() {
	for _, w := range all {
		w.over.Store(true)
		w.setting.Lock() // onGrid sets no timer after this
		w.timer.Stop()
		w.setting.Unlock()
		w.probe.Close()
	}
}

// wait waits until no look is in progress. Call it after end.
func (all watches) wait() {
	for _, w := range all {
		w.take()()
	}
}

// late returns the number of looks in progress that are not answered.
func (all watches) late() (n int) {
	for _, w := range all {
		if begun := w.begun.Load(); begun != 0 && time.Since(time.Unix(0, begun)) > lateLook {
			n++
		}
	}
	return n
}

// thenClose calls fn, which closes what a look reads from, when no look is in progress: at once, or on a separate
// goroutine. As long as a look is not answered, the descriptors of the tree stay open. Call it after end.
func (all watches) thenClose(fn func()) {
	for _, w := range all {
		select {
		case w.turn <- struct{}{}:
			<-w.turn
		default:
			go func() {
				all.wait()
				fn()
			}()
			return
		}
	}
	fn()
}

// take waits for the turn, and returns a function that ends it.
func (w *workWatch) take() (release func()) {
	w.turn <- struct{}{}
	return func() { <-w.turn }
}

func (w *workWatch) start() {
	w.setting.Lock()
	defer w.setting.Unlock()
	w.timer = pulse.AfterFunc(w.cell.Clock(), w.untilNext(), w.onGrid)
	w.probe = w.cell.Probe(w.step/2, w.look)
}

func (w *workWatch) onGrid() {
	w.look()
	w.setting.Lock()
	defer w.setting.Unlock()
	if !w.over.Load() {
		w.timer.Reset(w.untilNext())
	}
}

// look takes a look, or has the look in progress be followed by another one. It does not wait for a look in progress,
// which may never return.
func (w *workWatch) look() {
	// lookWanted is set before the turn is tried and read after it is given back, so that no call of look is lost.
	for w.lookWanted.Store(true); w.lookWanted.Load(); {
		select {
		case w.turn <- struct{}{}:
		default:
			return
		}
		w.lookWanted.Store(false)
		w.begun.Store(time.Now().UnixNano())
		w.lookOnce()
		w.begun.Store(0)
		<-w.turn
	}
}

func (w *workWatch) lookOnce() {
	w.setting.Lock() // start may not have set the probe
	probe := w.probe
	w.setting.Unlock()
	if w.over.Load() {
		return
	}
	probe.Begin()
	now, output := w.cell.Now(), w.silence.since()
	if now-max(output, w.looked) < w.step/2 {
		probe.End()
		return // too short for a rate
	}
	used, ok := w.meter()
	if !ok || w.over.Load() {
		return // without an answer to the probe: the limit remains in doubt
	}
	defer probe.End()
	// The usage may include work from before the last output. It counts, because it cannot be
	// distinguished from the work after it.
	read := w.cell.Now()
	in, least := read-max(output, w.read), w.step/2
	if in < least {
		// After a slow look the next one may follow at once. That is too short for a rate, too.
		used.Starved *= float64(in) / float64(least)
		in = least
	}
	if used.Running {
		w.runningLooks++
	} else {
		w.runningLooks = 0
	}
	if work.Rates(w.activity).Reached(used, in, w.runningLooks >= steadyLooks) {
		w.silence.beat()
	}
	w.looked, w.read = now, read
}

// untilNext returns the time until the next instant of the grid that is at least half a step away.
func (w *workWatch) untilNext() time.Duration {
	now := pulse.Now(w.cell.Clock()).Round(0)
	left := w.step - now.Sub(now.Truncate(w.step))
	if left < w.step/2 {
		left += w.step
	}
	return left
}

// A silence distinguishes the output of a tree from the beats of its watches. If a watch took a beat of
// the other watch for output, it would skip a look, and notice its own kind of work too late.
type silence struct {
	cell *pulse.Cell

	mu           sync.Mutex
	output, work time.Duration // instants of the last beats
}

// since returns when there was last output, or another sign of life that is not from the watches.
func (s *silence) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note()
}

// beat records work as a sign of life.
func (s *silence) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note()
	s.cell.Beat()
	s.work = s.cell.Last()
}

func (s *silence) note() time.Duration {
	if last := s.cell.Last(); last != s.work {
		s.output = last
	}
	return s.output
}

// lateLook is how long a look may take before it counts as unanswered.
const lateLook = 250 * time.Millisecond
