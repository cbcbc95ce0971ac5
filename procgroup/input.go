package procgroup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// ErrInput is matched by the error of a command that was stopped because it waits for input; see
// [StopOnInput].
var ErrInput = errors.New("procgroup: the command waits for input")

// An InputWait says that a command waits for input that does not come. The zero InputWait says
// that it is not known to wait.
//
// Whether a command waits is examined while it prints nothing, if its standard input is a pipe, a
// socket or a terminal. A command that reads an empty file, or no input at all, never waits. It is
// noticed about 0.6 s after the last output. A program that only listens, such as a server that
// also reads commands from its standard input, does not wait for input: something else could make
// it go on. Nor does a command of which a process may not be read, such as one of another user.
//
// Linux only, on amd64 and arm64. On other systems a command is not known to wait.
type InputWait struct {
	// Pid is the process that reads the input. It is 0 if the command is not known to wait.
	Pid int
	// Certain reports that nothing but input, or a signal such as an alarm that it has set for
	// itself, can make any of the command's processes go on. If it is false, the command probably
	// waits: a process waits for input, the processes above and below it only wait, and the last
	// line of the output is not finished.
	Certain bool
	// Prompt is the unfinished last line of the output without escape sequences, at most 160
	// characters of it. It is "" if the last line is finished, or if there is no output.
	Prompt string
	// Secret reports that the input is a terminal that does not echo it, as for a password.
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
// processes used the terminal from the background, and the system stopped that process. It would
// not continue until somebody brought it to the foreground, so the command is stopped within about
// a second, with the Reason [StoppedByTerminal] and the exit code 124.
//
// A command has a terminal only with [WithTerminal], if its standard input is the terminal of this
// program, or if SysProcAttr.Setpgid or Foreground is set: otherwise it runs in a session of its
// own, and a process that opens the terminal gets an error. In a terminal of its own, a command is
// not stopped while a process in the foreground waits for input, as a shell does at its prompt,
// because that process can continue the stopped one. Linux only, on amd64 and arm64.
var ErrTerminal = errors.New("procgroup: the command was stopped by the terminal")

// StopOnInput stops the command when it certainly waits for input, as a limit would. The Reason is
// [WaitingForInput], the error matches [ErrInput], and the exit code is 124. Without StopOnInput
// such a command waits until one of its limits has expired.
//
// It has no effect on a system that does not show what a command waits for; see [InputWait].
func StopOnInput() Option {
	return optionFunc(func(s *settings) { s.stopOnInput = true })
}

// WithInputWait calls fn when the command begins to wait for input, and when what is known about
// that changes: with the zero [InputWait] when it has gone on. The calls are made one at a time, on
// a separate goroutine; none begins after Wait has returned. The command is not examined during a
// call, so an fn that blocks delays what it is told, and nothing else.
//
// If fn panics or calls [runtime.Goexit], the command is aborted, and the error wraps a
// [*timeout.PanicError] or [timeout.ErrGoexit]. A nil fn is ignored.
func WithInputWait(fn func(InputWait)) Option {
	return optionFunc(func(s *settings) { s.onInputWait = fn })
}

// Input returns whether the command waits for input now. After the command has ended it returns
// what was known when it ended or was stopped. It is safe for concurrent use.
func (p *Process) Input() InputWait { return p.input.now() }

// How often a silent command is examined. The first look takes place this long after the last
// output, and the second must find the same. A look costs little while nothing of the command runs;
// where it costs more, there are fewer.
const (
	inputEvery    = 300 * time.Millisecond
	maxInputEvery = 3 * time.Second
	inputCost     = 100 // a look takes at most this part of the time
)

// An inputWatch finds out whether a command waits for input.
type inputWatch struct {
	cell    *pulse.Cell
	meter   proctree.InputMeter
	out     *capture.Capture
	told    func(InputWait)
	stop    func()
	stopped func(pid int)

	mu       sync.Mutex // held during a look, and while the timer is set
	timer    *time.Timer
	over     bool
	endNote  func()       // takes the note in the cell back
	asked    capture.Mark // the end of the output that was known when the command last waited
	answered capture.Mark // where it went on

	known sync.Mutex
	wait  InputWait
}

// watchInput begins to examine the command, if its input can make it wait. ctx is the context of its
// execution.
func (p *Process) watchInput(ctx context.Context) {
	if !p.canWait && !proctree.HasTerminal(p.inner) {
		return
	}
	meter := proctree.WatchInput(p.tree, p.stdin)
	if meter == nil {
		return
	}
	w := &p.input
	w.cell, w.meter, w.out = pulse.Of(ctx), meter, p.out
	if fn := p.onInputWait; fn != nil {
		w.told = func(wait InputWait) { capture.Guard(func() { fn(wait) }, p.abort) }
	}
	if p.stopOnInput {
		w.stop = func() { p.stop(&commandStop{reason: WaitingForInput, is: ErrInput}) }
	}
	w.stopped = func(pid int) {
		p.stop(&commandStop{reason: StoppedByTerminal, is: ErrTerminal, pid: pid})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(inputEvery, w.look)
}

func (w *inputWatch) now() InputWait {
	w.known.Lock()
	defer w.known.Unlock()
	return w.wait
}

// end ends the examination. What was known remains.
func (w *inputWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *inputWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	prompt, since, end := w.out.Prompt(w.answered)
	begun := time.Now()
	if silent := begun.Sub(since); silent < inputEvery {
		w.set(InputWait{}, end) // it has printed
		w.timer.Reset(inputEvery - silent)
		return
	}
	waiting, pid, secret := w.meter()
	if _, again, _ := w.out.Prompt(w.answered); again != since {
		w.timer.Reset(inputEvery)
		return
	}
	if waiting == proctree.StoppedByTerminal {
		w.stopped(pid)
		return
	}
	wait := InputWait{Pid: pid, Certain: waiting == proctree.InputCertainly, Prompt: prompt, Secret: secret}
	if waiting == proctree.NotWaiting || !wait.Certain && prompt == "" {
		wait = InputWait{}
	}
	w.set(wait, end)
	w.timer.Reset(min(max(inputEvery, inputCost*time.Since(begun)), maxInputEvery))
}

// set makes wait known, and tells everybody if it is new. end is the end of the output.
func (w *inputWatch) set(wait InputWait, end capture.Mark) {
	if end != w.asked && w.wait.Pid != 0 {
		// It was answered: what it had asked is no part of the next question.
		w.answered = w.asked
		if wait.Pid != 0 {
			wait.Prompt, _, end = w.out.Prompt(w.answered)
		}
	}
	w.asked = end
	w.known.Lock()
	changed := w.wait != wait
	w.wait = wait
	w.known.Unlock()
	if !changed {
		return
	}
	if w.endNote != nil {
		w.endNote()
		w.endNote = nil
	}
	if wait.Pid != 0 {
		var status any = pulse.Status(wait.String())
		w.endNote = w.cell.Note(&status)
	}
	if w.told != nil {
		w.told(wait)
	}
	if w.stop != nil && wait.Certain {
		w.stop()
	}
}
