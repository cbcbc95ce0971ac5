package procgroup

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// looksPerLimit is the number of measurements of work per idle limit, which are called looks. They take place at the
// instants of a grid, whose step is the limit divided by looksPerLimit. A look less than half a step after the
// beginning of a silence measures nothing. So the first measurement is at most 1½ steps after the beginning, which is
// the quarter of the limit that Activity promises.
const looksPerLimit = 6

// steadyLooks is the number of consecutive looks that must find a process running before the start of programs counts
// as work. Beside 16 busy loops on 2 cores, a shell that polls every 0.2 s was ready to run at a third of the looks,
// and find -exec at each of 56.
const steadyLooks = 3

// A workWatch measures one kind of work of a tree while there is no output.
//
// It looks at the instants of a grid that all watches with the same idle limit share, so that they share one reading of
// all processes. If the limit expires and the last look on the grid was late, because the machine is busy, the engine
// requests another look.
type workWatch struct {
	activity Activity // selects one kind of work
	silence  *silence
	cell     *pulse.Cell   // of the command's execution
	step     time.Duration // between two looks
	meter    work.Meter
	probe    *pulse.Probe

	over       atomic.Bool   // end was called
	lookWanted atomic.Bool   // another look must follow the look in progress; set and cleared by look
	begun      atomic.Int64  // when the look in progress began, in nanoseconds since 1970; 0 if there is none
	turn       chan struct{} // full during a look; guards looked, read and runningLooks

	setting sync.Mutex // guards probe and timer; never held during a look
	timer   pulse.Timer

	looked       time.Duration // when the last successful look began
	read         time.Duration // when that look ended
	runningLooks int           // number of consecutive looks, up to the last, that found a process running
}

// watches contains the watches of one tree, one for each kind of work. Separate watches are needed because separate
// threads read the I/O of processes. On a busy machine these may get no processor for seconds, and meanwhile the other
// watch must go on, so that a tree that uses processor time is not stopped as idle.
type watches []*workWatch

// startWatches starts a watch for each kind of work in a. It starts no watch if ctx has no idle limit.
func startWatches(ctx context.Context, a Activity, meter func(io bool) work.Meter) (all watches) {
	cell := pulse.Of(ctx)
	idle := cell.SmallestIdle()
	if idle == 0 {
		return nil
	}
	silence := &silence{cell: cell}
	for _, kind := range []Activity{{CPU: a.CPU, CPURate: cmp.Or(a.CPURate, work.DefaultCPURate)}, {IO: a.IO}} {
		if !kind.isSet() {
			continue
		}
		w := &workWatch{activity: kind, silence: silence, cell: cell, step: max(idle/looksPerLimit, time.Millisecond), meter: meter(kind.IO), turn: make(chan struct{}, 1)}
		all = append(all, w)
		w.start()
	}
	return all
}

// end stops the watches: no look begins, and a look in progress has no effect. end does not wait for a look in
// progress.
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
		w.turn <- struct{}{}
		<-w.turn
	}
}

// late returns the number of looks that have been in progress for longer than lateLook.
func (all watches) late() (n int) {
	for _, w := range all {
		if begun := w.begun.Load(); begun != 0 && time.Since(time.Unix(0, begun)) > lateLook {
			n++
		}
	}
	return n
}

// thenClose calls fn, which closes descriptors that a look reads from, when no look is in progress: at once, or later
// on its own goroutine. If a look never returns, fn is never called. Call it after end.
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

// start sets the timer for the first look, and the probe.
func (w *workWatch) start() {
	w.setting.Lock()
	defer w.setting.Unlock()
	w.timer = pulse.AfterFunc(w.cell.Clock(), w.untilNext(), w.onGrid)
	w.probe = w.cell.Probe(w.step/2, w.look)
}

// onGrid is the function of the timer: it takes a look and sets the timer again, unless end was called.
func (w *workWatch) onGrid() {
	w.look()
	w.setting.Lock()
	defer w.setting.Unlock()
	if !w.over.Load() {
		w.timer.Reset(w.untilNext())
	}
}

// look takes a look. If another look is in progress, look returns at once, and the goroutine of that look takes one
// more. look cannot wait for it, because it may never return.
func (w *workWatch) look() {
	// lookWanted is set before turn is filled and read after turn is emptied, so that no call of look is lost.
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

// lookOnce measures the work since the last look or the last output, whichever is later, and records a beat if the work
// reaches the rate of the activity. The caller has filled w.turn.
func (w *workWatch) lookOnce() {
	w.setting.Lock() // waits until start has set the probe
	probe := w.probe
	w.setting.Unlock()
	if w.over.Load() {
		return
	}
	probe.Begin()
	now, output := w.cell.Now(), w.silence.since()
	if now-max(output, w.looked) < w.step/2 {
		probe.End()
		return // the time is too short to compute a rate
	}
	used, ok := w.meter()
	if !ok || w.over.Load() {
		return // without probe.End: the decision about an expired limit still waits for a look
	}
	defer probe.End()
	// The usage may include work from before the last output. It counts, because it cannot be distinguished from the
	// work after it.
	read := w.cell.Now()
	in, least := read-max(output, w.read), w.step/2
	if in < least {
		// After a slow look the next look may follow at once. Then the rate is computed for the shortest time.
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

// A silence distinguishes the output of a tree from the beats of its watches. If a watch took a beat of the other watch
// for output, it would skip a look, and notice its own kind of work too late.
type silence struct {
	cell *pulse.Cell

	mu           sync.Mutex
	output, work time.Duration // instants of the last beat by output and of the last beat by a watch
}

// since returns the instant of the last beat of cell that no watch has recorded.
func (s *silence) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note()
}

// beat records work as a beat of cell.
func (s *silence) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note()
	s.cell.Beat()
	s.work = s.cell.Last()
}

// note implements since, and updates s.output. The caller holds s.mu.
func (s *silence) note() time.Duration {
	if last := s.cell.Last(); last != s.work {
		s.output = last
	}
	return s.output
}

// lateLook is the time after which a look in progress counts in Result.Unanswered.
const lateLook = 250 * time.Millisecond
