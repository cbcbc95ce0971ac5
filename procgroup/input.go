package procgroup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ErrInput is matched by the error of a command that was stopped because it waits for input; see
// [Input].
var ErrInput = errors.New("procgroup: the command waits for input")

// An InputWait says that a command waits for input that does not come. The zero InputWait says
// that it is not known to wait.
//
// A command is examined while it prints nothing, if its standard input is a pipe, a socket or a
// terminal; a command with any other input never waits. A wait is noticed 0.6 to 0.9 s after the
// last output. A program that only listens, such as a server that also reads commands from its
// standard input, does not wait for input: something else could make it go on. If a process of the
// command may not be examined, for example because another user runs it, the command is not known
// to wait. Nor is it with the containment [Group], because the processes that leave the group are not
// known.
//
// Linux only, on amd64 and arm64. On other systems a command is not known to wait.
type InputWait struct {
	// Pid is the process that reads the input. It is 0 if the command is not known to wait.
	Pid int
	// Certain reports whether every process of the command waits, and only input or a signal, such as
	// that of an alarm, can end the wait. If it is false and Pid is not 0, the command probably waits:
	// the process Pid waits for input, the processes above and below it only wait, and the last line of
	// the output is not finished.
	Certain bool
	// Prompt is the line in which the cursor stands, up to the cursor, as a person would read it:
	// the unfinished last line of the output, unless it was drawn in another order. It has at most
	// 160 characters, and is "" if nothing stands before the cursor.
	Prompt string
	// Secret reports whether the input is a terminal that does not echo what is typed, as for a
	// password.
	Secret bool
}

// String returns "waits for input: " with the prompt, "probably waits for input: " with the prompt
// if that is not certain, or "" for the zero InputWait.
func (w InputWait) String() string {
	if w.Pid == 0 {
		return ""
	}
	text := "waits for input"
	if !w.Certain {
		text = "probably waits for input"
	}
	if w.Prompt != "" {
		text += ": " + w.Prompt
	}
	return text
}

// ErrTerminal is matched by the error of a command that was stopped by the terminal: one of its
// processes used the terminal from the background, and the system stopped that process. That
// process would not continue until somebody brought it to the foreground, so the command is stopped
// within about a second, with the Reason [StoppedByTerminal] and the exit code 124.
//
// A command has a terminal only with [Terminal], if its standard input is the terminal of this
// program, or if SysProcAttr.Setpgid or Foreground is set: otherwise it runs in a session of its
// own, and a process that opens the terminal gets an error. In a terminal of its own, a command is
// not stopped while a process in the foreground waits for input, as a shell does at its prompt,
// because that process can continue the stopped one. Linux only, on amd64 and arm64.
var ErrTerminal = errors.New("procgroup: the command was stopped by the terminal")

// Input says what is done about a command that asks for input. It is an [Option]. With the zero Input the environment stays
// as it is, a wait is noticed and reported, and the command waits until one of its limits has expired. Where the system does
// not show what a command waits for, Stop and Notify have no effect; see [InputWait].
type Input struct {
	// Unattended sets environment variables that keep common programs from asking questions and from starting an editor or
	// a pager. A variable that is already set, in cmd.Env or, if cmd.Env is nil, in this process, keeps its value. The page
	// of the package lists them. Also leave cmd.Stdin nil: a command that reads its standard input then finds no input.
	Unattended bool
	// Stop stops the command when it certainly waits for input, as a limit would. The Reason is [WaitingForInput], the
	// error matches [ErrInput], and the exit code is 124.
	Stop bool
	// Notify is called when the command begins to wait for input, when what is known about the wait changes, and, with the
	// zero [InputWait], when the command has gone on; nil means nobody. The calls are made one at a time, on a separate
	// goroutine; none begins after Wait has returned. Nothing waits for the function, which may call the methods of the
	// Process: one that blocks delays only its next call, which then says what is known by then, and keeps a goroutine until
	// it returns. One that panics or calls [runtime.Goexit] aborts the command, and the error wraps a
	// [*timeout.PanicError] or [timeout.ErrGoexit].
	Notify func(InputWait)
}

func (i Input) apply(s *settings) { s.asks = i }

// Input returns what is known about the command's wait for input: now or, if the command was stopped,
// at that time. It returns the zero InputWait after a command has ended by itself. Output takes back
// what was found before it, and so does input that was copied from cmd.Stdin or reported with
// [Process.Answered]. Input is safe for concurrent use.
func (p *Process) Input() InputWait { return p.input.now() }

// Answered says that input was written to the command in a way that this package does not see: to a
// pipe that the caller has made, or to that of [exec.Cmd.StdinPipe]. Call it after the write. The
// command is not known to wait until it has been examined again. Answered is safe for concurrent use.
func (p *Process) Answered() { p.input.fed() }

// An inputWatch finds out whether a command waits for input.
//
// The finding of a look holds until there is output or input, which takes it back at once, whenever the next look
// is. Output and input come while a look is in progress, too, so each look compares the number of stirs before and
// after.
//
// A look asks the system about other processes, and so it may never return, as may the caller's callback. Nothing
// waits for either: no lock is held meanwhile, the callback is called on a goroutine of its own, and no other look
// begins as long as one is in progress. A look that returns after end has no effect.
type inputWatch struct {
	newMeter func() waits.Meter
	cell     *pulse.Cell
	out      *capture.Capture
	told     func(InputWait) // nil if there is no callback; it does not block
	teller   *teller         // nil likewise
	stop     func()
	stopped  func(pid int)
	timer    atomic.Pointer[time.Timer] // nil if the command is not examined

	stirs atomic.Uint64 // output and input so far
	anew  atomic.Bool   // there was input since the last look
	waits atomic.Bool   // wait may not be zero; if it is, the next piece of output finds that out

	// Used by the look in progress only.
	meter    waits.Meter
	last     InputWait    // the finding of the last look, which was reported
	lastAt   uint64       // the number of stirs then
	asked    capture.Mark // the end of the output that was known when the command last waited
	answered capture.Mark // the end of the output when the command last went on after a wait

	mu      sync.Mutex // held for moments, and never during a look or a call of the caller's code
	over    bool       // no look begins, and what a look finds has no effect
	looking bool
	release func()    // called at the end of the look in progress, unless it is nil
	begun   time.Time // the start of the look in progress
	final   bool      // wait does not change any more
	wait    InputWait
	before  InputWait // the last one that was not zero
	endNote func()    // takes the note in the cell back
}

// watchInput begins to examine the command, if its input can make it wait. ctx is the context of its
// execution.
func (p *Process) watchInput(ctx context.Context) {
	newMeter := func() waits.Meter { return waits.Watch(p.tree, p.stdin) }
	if sim := p.simulated; sim != nil {
		newMeter = func() waits.Meter { return sim.WatchInput(p.tree) }
	} else if !p.canWait && !proctree.HasTerminal(p.inner) {
		return
	}
	meter := newMeter()
	if meter == nil {
		return
	}
	w := &p.input
	w.cell, w.newMeter, w.meter, w.out = pulse.Of(ctx), newMeter, meter, p.out
	if fn := p.asks.Notify; fn != nil {
		w.teller = &teller{fn: fn, fail: p.abort}
		w.told = w.teller.tell
	}
	if p.asks.Stop {
		w.stop = func() { p.abort(&commandStop{reason: WaitingForInput, is: ErrInput}) }
	}
	w.stopped = func(pid int) {
		p.abort(&commandStop{reason: StoppedByTerminal, is: ErrTerminal, pid: pid})
	}
	w.start()
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

// thenClose calls fn, which closes what a look reads from, when no look is in progress: at once, or at the end of that look.
// As long as that is not answered, the descriptors of the tree stay open. Call it after end.
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

// finish makes the call of the caller's function that is in progress, if there is one, the last. It waits for calls that
// have not begun, until the given time. Call it after end.
func (w *inputWatch) finish(until time.Time) {
	if w.teller != nil {
		w.teller.finish(until)
	}
}

// lateLook is how long a look may take before it counts as unanswered.
const lateLook = 250 * time.Millisecond

// late returns the number of looks in progress that are not answered.
func (w *inputWatch) late() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.looking && time.Since(w.begun) > lateLook {
		return 1
	}
	return 0
}

// fed takes back what is known, because the command got input. The next look comes soon, and takes nothing from
// those before: on a busy machine a process that has been woken may not have run yet, and then looks as before.
func (w *inputWatch) fed() {
	w.anew.Store(true)
	w.stirred()
	w.soon()
}

// stirred takes back what is known, because the command has done something. It is called for each piece of output.
func (w *inputWatch) stirred() {
	w.stirs.Add(1)
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
		return // the look in progress sees that the command has stirred, and arms the timer
	}
	w.looking, w.begun = true, time.Now()
	w.mu.Unlock()
	at := w.stirs.Load() // first: what comes between the two makes this look void
	next := w.find(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = false
	switch {
	case w.release != nil:
		go w.release()
	case w.over || next == never:
	case w.stirs.Load() != at: // whatever is next: soon may have been called meanwhile
		w.soon()
	default:
		w.timer.Load().Reset(next)
		if w.stirs.Load() != at { // it may have made the look come soon, which this has undone
			w.soon()
		}
	}
}

// never is the time until the next look if there will be none.
const never = time.Duration(-1)

// find finds out whether the command waits, and makes that known. at is the number of stirs before. It returns the time
// until the next look.
func (w *inputWatch) find(at uint64) (next time.Duration) {
	if w.anew.Swap(false) {
		w.meter = w.newMeter()
	}
	prompt, since, end := w.out.Prompt(w.answered)
	if silent := time.Since(since); silent < waits.LookEvery {
		w.set(InputWait{}, end, at) // it has printed
		return waits.UntilSilent(waits.LookEvery - silent)
	}
	l := w.meter()
	if w.stirs.Load() != at {
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

// set makes wait known, and tells everybody if it is new. end is the end of the output, and at the number of stirs, at
// the beginning of the look.
func (w *inputWatch) set(wait InputWait, end capture.Mark, at uint64) {
	answered := w.answered
	if end != w.asked && w.last.Pid != 0 {
		// It was answered: the question is no part of the next one.
		answered = w.asked
		if wait.Pid != 0 {
			wait.Prompt, _, end = w.out.Prompt(answered)
		}
	}
	changed := wait != w.last || wait.Pid != 0 && at != w.lastAt
	if changed && !w.publish(wait, at) {
		return // the next look comes soon
	}
	w.answered, w.asked = answered, end
	if !changed {
		return
	}
	w.last, w.lastAt = wait, at
	if w.told != nil {
		w.told(wait)
	}
	if w.stop != nil && wait.Certain {
		w.stop()
	}
}

// publish makes wait known, unless the command has stirred since the look began, or nothing may change any more.
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
	current := w.stirs.Load() == at
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

// A teller calls the caller's Notify, on a goroutine that exists as long as there is something to
// tell. A finding that has not been told when a newer one comes is dropped, except that the command has gone on between
// two waits.
type teller struct {
	fn   func(InputWait)
	fail func(error) // see capture.Guard

	mu      sync.Mutex
	pending []InputWait   // at most two: that it has gone on, and a wait after that
	newest  InputWait     // the last one for which a call was decided on
	calling bool          // a call was decided on, and has not returned
	over    bool          // no call begins
	idle    chan struct{} // closed when the goroutine has ended; nil if there was none
}

// tell has the function called with wait. It does not wait for it.
func (t *teller) tell(wait InputWait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if n := len(t.pending); n > 0 && (wait.Pid == 0 || t.pending[n-1].Pid != 0) {
		t.pending = t.pending[:n-1]
		if wait.Pid == 0 {
			t.pending = t.pending[:0]
		}
	}
	if wait.Pid != 0 || t.newest.Pid != 0 {
		t.pending = append(t.pending, wait)
	}
	if t.idle == nil && len(t.pending) > 0 {
		t.idle = make(chan struct{})
		go t.run(t.idle)
	}
}

func (t *teller) run(idle chan struct{}) {
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calling = false
		if len(t.pending) > 0 && !t.over { // it has ended this goroutine
			go t.run(idle)
			return
		}
		t.idle = nil
		close(idle)
	}()
	for {
		t.mu.Lock()
		if len(t.pending) == 0 || t.over {
			t.mu.Unlock()
			return
		}
		wait := t.pending[0]
		t.pending, t.newest, t.calling = t.pending[1:], wait, true
		t.mu.Unlock()
		capture.Guard(func() { t.fn(wait) }, t.fail)
		t.mu.Lock()
		t.calling = false
		t.mu.Unlock()
	}
}

// beginTime is how long a call that has been decided on may take to begin.
const beginTime = 50 * time.Millisecond

// finish lets what is pending be told until the given time, but waits only for a moment for a call in progress: that may
// not have begun, and must not begin after Wait has returned. No call begins after finish.
func (t *teller) finish(until time.Time) {
	for {
		t.mu.Lock()
		idle := t.idle
		late := !time.Now().Before(until)
		calling := t.calling
		t.over = t.over || late || calling || idle == nil
		over := t.over
		t.mu.Unlock()
		if idle == nil {
			return
		}
		wait := time.Millisecond // until the goroutine gets its turn
		if over {
			wait = beginTime
		}
		moment := time.NewTimer(wait)
		select {
		case <-idle:
		case <-moment.C:
		}
		moment.Stop()
		if over {
			return
		}
	}
}
