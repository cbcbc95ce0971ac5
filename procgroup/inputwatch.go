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

// An inputWatch examines, in looks at regular times, whether a command waits for input.
//
// The result of a look holds until the next output or input, which ends the wait at once. Output and input also arrive
// during a look, so each look compares the number of these events before and after.
//
// A look, which queries the system about other processes, may never return, and neither may the caller's callback. So
// no lock is held during either, the callback runs on its own goroutine, and no look begins while another is in
// progress. A look that returns after end has no effect.
type inputWatch struct {
	newMeter func() waits.Meter
	cell     *pulse.Cell // of the command's execution
	out      *capture.Capture
	teller   *teller                    // nil without Input.Notify
	stop     func()                     // stops the command that certainly waits; nil without Input.Stop
	stopped  func(pid int)              // stops the command, whose process pid the terminal has stopped
	timer    atomic.Pointer[time.Timer] // nil if the command is not examined

	events atomic.Uint64 // number of pieces of output and of input so far
	input  atomic.Bool   // there was input since the last look; find clears it
	waits  atomic.Bool   // false only if wait is zero, so that output need not lock mu

	// Only the look in progress uses these.
	meter    waits.Meter
	last     InputWait    // the newest result that set has reported
	lastAt   uint64       // the value of events at that look
	waitedAt capture.Mark // the end of the output at the last look with a result
	wentOnAt capture.Mark // the end of the output before the last answer; later output belongs to the next prompt

	mu      sync.Mutex // guards the fields below; never held during a look or a call of the caller's code
	over    bool       // no look begins, and the result of a look has no effect
	looking bool       // a look is in progress
	release func()     // called at the end of the look in progress, unless it is nil
	begun   time.Time  // the start of the look in progress
	final   bool       // wait does not change any more
	wait    InputWait  // the result of Process.Input
	before  InputWait  // the last wait that was not zero
	endNote func()     // removes the status of wait from cell; nil if there is none
}

// start arms the timer for the first look.
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

// at sets w.wait to the wait at the time of stop, as the Detail of stop shows it, and returns w.wait. Between stop and
// end, the command may have begun to wait, or have gone on: at removes such a wait, or restores it. If the command was
// stopped for what it did, w.wait is right already. Call at after end.
func (w *inputWatch) at(stop *timeout.Error) InputWait {
	w.mu.Lock()
	defer w.mu.Unlock()
	status, known := stop.Detail.(pulse.Status) // what publish has noted in the cell
	switch {
	case stopOf(stop) != nil:
	case known && string(status) == w.before.String():
		w.wait = w.before
	case stop.Detail == nil:
		w.wait = InputWait{}
	}
	return w.wait
}

// end ends the examination, without waiting for a look in progress. If the command was stopped, w.wait remains.
// Otherwise end sets it to zero: the command may have ended so soon after its input that the input has not been counted
// yet.
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

// thenClose calls fn, which closes descriptors that a look reads from, when no look is in progress: at once, or at the
// end of that look, on its own goroutine. If the look never returns, fn is never called. Call it after end.
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

// late returns the number of looks, 0 or 1, that have been in progress for longer than lateLook.
func (w *inputWatch) late() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looking && time.Since(w.begun) > lateLook {
		return 1
	}
	return 0
}

// noteInput ends the wait, because the command got input. The next look comes soon, with a new meter, which does not
// compare with earlier looks: on a busy machine a process that the input has woken may not have run yet, and would
// still seem to wait.
func (w *inputWatch) noteInput() {
	w.input.Store(true)
	w.noteActivity()
	w.soon()
}

// noteActivity ends the wait, because the command wrote a piece of output or got input.
func (w *inputWatch) noteActivity() {
	w.events.Add(1)
	if !w.waits.Load() { // no wait is published; a publish that begins now compares events after it has set waits
		return
	}
	w.mu.Lock()
	if w.final {
		w.mu.Unlock()
		return
	}
	w.waits.Store(false)
	endNote := w.endNote
	w.wait, w.endNote = InputWait{}, nil
	w.mu.Unlock()
	if endNote != nil {
		endNote()
	}
	w.soon()
}

// soon sets the timer to the shortest time, waits.LookEvery, unless the command is not examined.
func (w *inputWatch) soon() {
	if timer := w.timer.Load(); timer != nil {
		timer.Reset(waits.UntilSilent(waits.LookEvery))
	}
}

// look takes one look at the command, unless w is over or another look is in progress, and then sets the timer for the
// next look.
func (w *inputWatch) look() {
	w.mu.Lock()
	if w.over || w.looking {
		w.mu.Unlock()
		return // the look in progress finds the new events, and sets the timer
	}
	w.looking, w.begun = true, time.Now()
	w.mu.Unlock()
	at := w.events.Load() // before find: output or input during it makes the result void
	next := w.find(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = false
	switch {
	case w.release != nil:
		go w.release()
	case w.over || next == never:
	case w.events.Load() != at: // next is void
		w.soon()
	default:
		w.timer.Load().Reset(next)
		if w.events.Load() != at { // the Reset may have undone a concurrent call of soon
			w.soon()
		}
	}
}

// never is the result of find if no further look is needed.
const never = time.Duration(-1)

// find examines whether the command waits, and passes the result to set. at is the value of w.events before the look.
// find returns the time until the next look, or never if the command is to be stopped.
func (w *inputWatch) find(at uint64) (next time.Duration) {
	if w.input.Swap(false) {
		w.meter = w.newMeter()
	}
	prompt, since, end := w.out.Prompt(w.wentOnAt)
	if silent := time.Since(since); silent < waits.LookEvery {
		w.set(InputWait{}, end, at) // there was output a moment ago
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

// set publishes wait, the result of a look, and calls notify if wait is new. end is the end of the output, and at the
// value of w.events, at the beginning of the look.
func (w *inputWatch) set(wait InputWait, end capture.Mark, at uint64) {
	answered := w.wentOnAt
	if end != w.waitedAt && w.last.Pid != 0 {
		// There was output after the last wait, so its prompt was answered and is not part of the next prompt.
		answered = w.waitedAt
		if wait.Pid != 0 {
			wait.Prompt, _, end = w.out.Prompt(answered)
		}
	}
	changed := wait != w.last || wait.Pid != 0 && at != w.lastAt
	if changed && !w.publish(wait, at) {
		return // output or input made the result void
	}
	w.wentOnAt, w.waitedAt = answered, end
	if !changed {
		return
	}
	w.last, w.lastAt = wait, at
	if w.teller != nil {
		w.teller.tell(wait)
	}
	if w.stop != nil && wait.Certain {
		w.stop()
	}
}

// publish sets w.wait and the status in the cell, and reports whether it has set them to wait. If events differs from
// at, because there was output or input since the look began, it sets them to zero instead, and returns false. If set
// will stop the command because of wait, it makes w.wait final. If w.wait is final already, it changes nothing, and
// returns false.
func (w *inputWatch) publish(wait InputWait, at uint64) bool {
	note := func() {}
	if wait.Pid != 0 {
		var status any = pulse.Status(wait.String())
		note = w.cell.Note(&status)
	}
	var old func()
	current := false
	w.mu.Lock()
	if !w.final {
		w.waits.Store(true) // before the comparison: either it finds the new event, or noteActivity finds waits set
		current = w.events.Load() == at
		old, w.wait, w.endNote = w.endNote, InputWait{}, nil
		if current {
			if w.wait, w.endNote = wait, note; wait.Pid != 0 {
				w.before = wait
			}
			w.final = w.stop != nil && wait.Certain // set will stop the command because of this wait
		}
	}
	w.mu.Unlock()
	if old != nil {
		old()
	}
	if !current {
		note()
	}
	return current
}
