package procgroup

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// looksPerLimit is how often per idle limit work is looked at. A look falls on the next
// instant of a grid that is half a step away: so the first one of a silence is 1½ steps
// after its beginning at the latest, which is the quarter that WithActivity promises.
const looksPerLimit = 6

// steadyLooks is at how many looks in a row something has to be running for the tree to be at work all the
// time. Beside 16 busy loops on 2 cores, a shell that polls every 0.2 s was ready to run at a third of
// the looks, and find -exec at each of 56.
const steadyLooks = 3

// A workWatch looks at work of one kind of a tree while there is no output.
//
// It looks at the instants of a grid that all watches with the same idle limit have in common,
// so that they share a look at all processes. Where the limit falls due and the last look on the grid
// was not in time, for the machine is busy, the engine asks for one more.
type workWatch struct {
	activity Activity // with one kind of work
	silence  *silence
	cell     *pulse.Cell // that of the command's execution
	step     time.Duration
	meter    proctree.Meter
	probe    *pulse.Probe

	over   atomic.Bool
	next   atomic.Bool   // somebody waits for the turn, to look
	turn   chan struct{} // held during a look, and while the timer is set; guards what follows
	timer  pulse.Timer
	looked time.Duration // when the last look began in which meter could tell ...
	read   time.Duration // ... and when it had told
	ran    int           // at how many looks in a row, up to that one, something was running
}

// watches are those of one tree, one for each kind of work: bytes of processes are read by
// threads of their own, which may be without a processor for seconds on a busy machine, and who uses
// processor time is not to be taken for idle because of that.
type watches []*workWatch

// watchWork begins to look at the work of the tree, if that is wanted. ctx is the command's
// execution's.
func (p *Process) watchWork(ctx context.Context) {
	p.work = startWatches(ctx, p.activity, p.tree.Meter)
}

// startWatches returns none where there is nothing to look for.
func startWatches(ctx context.Context, a Activity, meter func(io bool) proctree.Meter) (all watches) {
	cell := pulse.Of(ctx)
	idle := cell.SmallestIdle()
	if idle == 0 {
		return nil
	}
	silence := &silence{cell: cell}
	for _, kind := range []Activity{{CPU: a.CPU, CPURate: a.CPURate}, {IO: a.IO, IORate: a.IORate, NetRate: a.NetRate}} {
		if !kind.wanted() {
			continue
		}
		w := &workWatch{activity: kind, silence: silence, cell: cell, step: max(idle/looksPerLimit, time.Millisecond), meter: meter(kind.IO), turn: make(chan struct{}, 1)}
		all = append(all, w)
		w.start()
	}
	return all
}

// end makes it over: no look begins, and one that is under way finds nothing any more. It does not
// wait for that.
func (all watches) end() {
	for _, w := range all {
		w.over.Store(true) // before its turn: a look that waits for its own has nothing to do then
		w.timer.Stop()
		w.probe.Close()
	}
}

// wait returns when no look is under way, after end.
func (all watches) wait() {
	for _, w := range all {
		release := w.take()
		w.timer.Stop() // it may have been set meanwhile
		release()
	}
}

// stop is end, and waits.
func (all watches) stop() {
	all.end()
	all.wait()
}

// thenClose calls fn when no look is under way, after end: at once, or on a goroutine of its own.
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

// take waits for the turn, and returns what ends it.
func (w *workWatch) take() (release func()) {
	w.turn <- struct{}{}
	return func() { <-w.turn }
}

func (w *workWatch) start() {
	defer w.take()()
	w.timer = pulse.AfterFunc(w.cell.Clock(), w.untilNext(), w.onGrid)
	w.probe = w.cell.Probe(w.step/2, w.look)
}

func (w *workWatch) onGrid() {
	w.look()
	defer w.take()()
	if !w.over.Load() {
		w.timer.Reset(w.untilNext())
	}
}

func (w *workWatch) look() {
	if w.next.Swap(true) {
		return // there will be one that begins after this
	}
	release := w.take()
	defer release()
	w.next.Store(false)
	if w.over.Load() {
		return
	}
	w.probe.Begin()
	now, output := w.cell.Now(), w.silence.began()
	if now-max(output, w.looked) < w.step/2 {
		w.probe.End()
		return // too short for a rate
	}
	used, ok := w.meter()
	if !ok || w.over.Load() {
		return // which decides nothing: the limit stays in doubt
	}
	defer w.probe.End()
	// Work before the last output may be among what was used. It counts all the same: as it
	// cannot be told from what came after, the tree gets the benefit.
	read := w.cell.Now()
	in, least := read-max(output, w.read), w.step/2
	if in < least {
		// After a look that took its time another may follow at once: that is too short, too.
		used.Starved *= float64(in) / float64(least)
		in = least
	}
	if used.Running {
		w.ran++
	} else {
		w.ran = 0
	}
	if w.activity.enough(used, in, w.ran >= steadyLooks) {
		w.silence.beat()
	}
	w.looked, w.read = now, read
}

// untilNext is the time to the next instant of the grid, at least half a step.
func (w *workWatch) untilNext() time.Duration {
	now := pulse.Now(w.cell.Clock()).Round(0)
	left := w.step - now.Sub(now.Truncate(w.step))
	if left < w.step/2 {
		left += w.step
	}
	return left
}

// A silence tells the output of a tree from what its watches beat for. A watch that took a beat of
// the other one for output would leave out the look that is due then, and what it finds by the next
// would count too late.
type silence struct {
	cell *pulse.Cell

	mu           sync.Mutex
	output, work time.Duration // instants of the last beats
}

// began is when there was output last, or another sign of life that is none of these watches'.
func (s *silence) began() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note()
}

// beat is for work.
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
