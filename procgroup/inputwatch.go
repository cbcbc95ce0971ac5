package procgroup

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An inputWatch finds out whether a command waits for input.
//
// The finding of a look holds until there is output or input, which takes it back at once, whenever the next look
// is. Output and input come while a look is in progress, too, so each look compares the number of events before and
// after.
//
// A look asks the system about other processes, and so it may never return, as may the caller's callback. Nothing
// waits for either: no lock is held meanwhile, the callback is called on a goroutine of its own, and no other look
// begins as long as one is in progress. A look that returns after end has no effect.
type inputWatch struct {
	newMeter func() waits.Meter
	cell     *pulse.Cell
	out      *capture.Capture
	notify   func(InputWait) // nil if there is no callback; it does not block
	teller   *teller         // nil if there is no callback
	stop     func()
	stopped  func(pid int)
	timer    atomic.Pointer[time.Timer] // nil if the command is not examined

	events atomic.Uint64 // number of pieces of output and of input so far
	input  atomic.Bool   // there was input since the last look
	waits  atomic.Bool   // wait may not be zero; if it is, the next piece of output finds that out

	// Used by the look in progress only.
	meter    waits.Meter
	last     InputWait    // the finding of the last look, which was reported
	lastAt   uint64       // the number of events then
	waitedAt capture.Mark // the end of the output that was known when the command last waited
	wentOnAt capture.Mark // the end of the output when the command last went on after a wait

	mu      sync.Mutex // held for moments, and never during a look or a call of the caller's code
	over    bool       // no look begins, and what a look finds has no effect
	looking bool
	release func()    // called at the end of the look in progress, unless it is nil
	begun   time.Time // the start of the look in progress
	final   bool      // wait does not change any more
	wait    InputWait
	before  InputWait // the last wait that was not zero
	endNote func()    // takes the note in the cell back
}

func (w *inputWatch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Store(time.AfterFunc(waits.UntilSilent(waits.LookEvery), w.look))
}

func (w *inputWatch) now() InputWait {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wait
}

// at makes the wait that Input returns from now on agree with the detail of stop, and returns it. A wait that became
// known while the processes were listed is left out, and one that was taken back meanwhile is restored. Call it after
// end.
func (w *inputWatch) at(stop *timeout.Error) InputWait {
	w.mu.Lock()
	defer w.mu.Unlock()
	status, known := stop.Detail.(pulse.Status) // the note of the wait
	switch {
	case stopOf(stop) != nil:
	case known && string(status) == w.before.String():
		w.wait = w.before
	case stop.Detail == nil:
		w.wait = InputWait{}
	}
	return w.wait
}

// end ends the examination, and does not wait for a look in progress. The last finding remains if the command was
// stopped. A command that has ended by itself waits no more, even if it was so fast that the end of its input has not
// been noted yet.
func (w *inputWatch) end(stopped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.final = true, true
	if timer := w.timer.Load(); timer != nil {
		timer.Stop()
	}
	if !stopped {
		w.wait = InputWait{}
	}
}

// thenClose calls fn, which closes what a look reads from, when no look is in progress: at once, or at the end of
// that look. As long as the look is not answered, the descriptors of the tree stay open. Call it after end.
func (w *inputWatch) thenClose(fn func()) {
	w.mu.Lock()
	looking := w.looking
	if looking {
		w.release = fn
	}
	w.mu.Unlock()
	if !looking {
		fn()
	}
}

// finish makes the call of the caller's function that is in progress, if there is one, the last. It waits for calls
// that have not begun, until the given time. Call it after end.
func (w *inputWatch) finish(until time.Time) {
	if w.teller != nil {
		w.teller.finish(until)
	}
}

// late returns the number of looks in progress that are not answered.
func (w *inputWatch) late() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looking && time.Since(w.begun) > lateLook {
		return 1
	}
	return 0
}

// noteInput takes back the finding, because the command got input. The next look comes soon, and uses nothing of
// the earlier looks: on a busy machine a process that has been woken may not have run yet, and then looks as
// before.
func (w *inputWatch) noteInput() {
	w.input.Store(true)
	w.noteActivity()
	w.soon()
}

// noteActivity takes back the finding, because the command has done something. It is called for each piece of
// output.
func (w *inputWatch) noteActivity() {
	w.events.Add(1)
	if !w.waits.Load() { // set has not begun, and will see the new number
		return
	}
	w.mu.Lock()
	if w.final {
		w.mu.Unlock()
		return
	}
	w.wait = InputWait{}
	w.waits.Store(false)
	endNote := w.endNote
	w.endNote = nil
	w.mu.Unlock()
	if endNote != nil {
		endNote()
	}
	w.soon()
}

// soon makes the next look come soon.
func (w *inputWatch) soon() {
	if timer := w.timer.Load(); timer != nil {
		timer.Reset(waits.UntilSilent(waits.LookEvery))
	}
}

// look looks at the command, unless it is over or the last look has not returned. It arms the timer for the next look.
func (w *inputWatch) look() {
	w.mu.Lock()
	if w.over || w.looking {
		w.mu.Unlock()
		return // the look in progress sees that the command has done something, and arms the timer
	}
	w.looking, w.begun = true, time.Now()
	w.mu.Unlock()
	at := w.events.Load() // first: what comes between the two makes this look void
	next := w.find(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = false
	switch {
	case w.release != nil:
		go w.release()
	case w.over || next == never:
	case w.events.Load() != at: // whatever is next: soon may have been called meanwhile
		w.soon()
	default:
		w.timer.Load().Reset(next)
		if w.events.Load() != at { // soon may have been called before the Reset, which has undone it
			w.soon()
		}
	}
}

// never is the time until the next look if there will be no further look.
const never = time.Duration(-1)

// find finds out whether the command waits, and reports the finding. at is the number of events before. It returns
// the time until the next look.
func (w *inputWatch) find(at uint64) (next time.Duration) {
	if w.input.Swap(false) {
		w.meter = w.newMeter()
	}
	prompt, since, end := w.out.Prompt(w.wentOnAt)
	if silent := time.Since(since); silent < waits.LookEvery {
		w.set(InputWait{}, end, at) // the command has printed
		return waits.UntilSilent(waits.LookEvery - silent)
	}
	l := w.meter()
	if w.events.Load() != at {
		return 0 // soon
	}
	if l.State == waits.StoppedByTerminal {
		if !w.isOver() {
			w.stopped(l.Pid)
		}
		return never
	}
	wait := InputWait{Pid: l.Pid, Certain: l.State == waits.InputCertainly, Prompt: prompt, Secret: l.Secret}
	if l.State == waits.None || !wait.Certain && prompt == "" {
		wait = InputWait{}
	}
	w.set(wait, end, at)
	return waits.UntilLook(l.Next)
}

func (w *inputWatch) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// set reports wait: Input returns it, and the callback is called if it is new. end is the end of the output, and at
// the number of events, at the beginning of the look.
func (w *inputWatch) set(wait InputWait, end capture.Mark, at uint64) {
	answered := w.wentOnAt
	if end != w.waitedAt && w.last.Pid != 0 {
		// It was answered: the question is no part of the next one.
		answered = w.waitedAt
		if wait.Pid != 0 {
			wait.Prompt, _, end = w.out.Prompt(answered)
		}
	}
	changed := wait != w.last || wait.Pid != 0 && at != w.lastAt
	if changed && !w.publish(wait, at) {
		return // the next look comes soon
	}
	w.wentOnAt, w.waitedAt = answered, end
	if !changed {
		return
	}
	w.last, w.lastAt = wait, at
	if w.notify != nil {
		w.notify(wait)
	}
	if w.stop != nil && wait.Certain {
		w.stop()
	}
}

// publish sets the wait that Input returns, and reports whether it did. It does not if the command has done something
// since the look began, or if the wait is final.
func (w *inputWatch) publish(wait InputWait, at uint64) bool {
	var note func()
	if wait.Pid != 0 {
		var status any = pulse.Status(wait.String())
		note = w.cell.Note(&status)
	}
	w.mu.Lock()
	if w.final {
		w.mu.Unlock()
		if note != nil {
			note()
		}
		return false
	}
	w.waits.Store(true) // before the comparison: one of the two sees the other
	current := w.events.Load() == at
	old := w.endNote
	if current {
		if w.wait, w.endNote = wait, note; wait.Pid != 0 {
			w.before = wait
		}
		w.final = w.stop != nil && wait.Certain // it is why the command is stopped
	} else {
		w.wait, w.endNote = InputWait{}, nil
	}
	w.mu.Unlock()
	if old != nil {
		old()
	}
	if !current && note != nil {
		note()
	}
	return current
}
