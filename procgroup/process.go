package procgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A Process is a command that was started with [Start]. Its methods are safe for concurrent use.
type Process struct {
	settings
	cmd    *exec.Cmd       // the caller's command
	inner  *exec.Cmd       // the copy that runs, with this package's pipes
	ctx    context.Context // derived from caller; cancel cancels it
	cancel context.CancelCauseFunc
	caller context.Context // the ctx argument of Start
	merged mergedContext   // ctx and the context of exec.CommandContext
	begun  time.Time       // when Start was called

	simulated machine.Machine // nil unless a test runs the command in a simulation

	// The caller's goroutine spawns the command, because children inherit properties of the thread that starts them.
	// The supervisor's goroutine runs the execution.
	entered  chan context.Context // receives the context of the command's execution when the execution begins
	running  context.Context      // the same context; set by the supervisor
	spawned  chan struct{}        // closed when tree or startErr is set
	tree     proctree.Tree        // nil if the command was not started
	startErr error
	inForce  proctree.Limits // the limits of Resources that the control group enforces
	hostPeak int64           // peak resident set of this process after the start, in bytes
	out      *capture.Capture
	unsay    func()      // stops using the last line of output as the status of the execution
	work     watches     // nil if work is not a heartbeat
	stdin    waits.Input // set if cmd.Stdin is a file
	canWait  bool        // reports whether a read of stdin can block
	input    inputWatch
	aborted  atomic.Bool // set by abort
	spill    *spillFile  // nil without Capture.Spill
	notices  notices

	viewing chan struct{} // a lock for view and for looks at the tree; a channel, because a look may take long
	view    ProcessList   // the processes when a limit fired or what the command did stopped it; empty after an abort

	mu   sync.Mutex  // held while Signal signals the tree
	over atomic.Bool // the tree must not be signalled any more; set before mu is locked

	done   chan struct{} // closed when result and err are set and the hooks have returned or are late
	result *Result
	err    error
}

// Wait waits until the command has ended, and returns its result. The error is nil if the command ended by itself with
// code 0, and an [*exec.ExitError] if it ended by itself in another way. After a limit or an abort it is a
// [*timeout.Error], with the command's own error in the Err field and the result in the Result field. If the command
// was stopped for what it did, or ran out of memory, the error matches the [Reason]. If cmd.Stdin, cmd.Stdout or
// cmd.Stderr failed, the error also wraps the error of that reader or writer.
//
// After a limit has stopped the command, Wait returns at most 1 s after the end of the kill grace, or later if hooks or
// log handlers are slow; see the guarantees of the package. Wait may be called more than once.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return p.result, p.err
}

// abort stops the command with the cause err: a commandStop, or the panic or Goexit of one of the caller's functions.
func (p *Process) abort(err error) {
	p.aborted.Store(true)
	p.cancel(err)
}

// Input returns the command's wait for input: the current one or, if the command was stopped, the one at that time. It
// returns the zero InputWait if the command is not known to wait, or has ended by itself. Output of the command ends a
// wait, and so does input that was copied from cmd.Stdin or reported with [Process.Answered].
func (p *Process) Input() InputWait { return p.input.now() }

// Answered reports to p that input was written to the command in a way that this package does not see: to a pipe that
// the caller has made, or to the pipe of [exec.Cmd.StdinPipe]. Call it after the write. [Process.Input] then returns
// the zero InputWait until the command has been examined again.
func (p *Process) Answered() { p.input.noteInput() }

// Notices returns the states that the processes of the command have sent so far to the socket of [Notify]. Without a
// socket it returns the zero Notices.
func (p *Process) Notices() Notices { return p.notices.snapshot() }

// Ready returns a channel that is closed when the command sends READY=1 to the socket of [Notify]. The end of the
// command does not close it. Without a socket the channel is nil.
func (p *Process) Ready() <-chan struct{} { return p.notices.ready }

// Stopping returns a channel that is closed when the command sends STOPPING=1 to the socket of [Notify]. The end of the
// command does not close it. Without a socket the channel is nil.
func (p *Process) Stopping() <-chan struct{} { return p.notices.stopping }

var errNoTerminal = fmt.Errorf("procgroup: the command has no terminal of its own; see Terminal (%w)", errors.ErrUnsupported)

// Resize changes the size of the terminal of [Terminal]; 0 rows mean 24, and 0 cols mean 80. The processes in the
// foreground get SIGWINCH. After the command has ended, the error is [os.ErrProcessDone]. Without a terminal it wraps
// [errors.ErrUnsupported].
func (p *Process) Resize(rows, cols uint16) error {
	if p.terminal == nil {
		return errNoTerminal
	}
	err := p.out.Resize(sizeOf(rows, cols))
	if errors.Is(err, os.ErrClosed) {
		return os.ErrProcessDone
	}
	return err
}
