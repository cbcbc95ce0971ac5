package procgroup

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A Process is a command that was started with [Start]. Its methods are safe for concurrent
// use.
type Process struct {
	settings
	cmd    *exec.Cmd       // the caller's command
	inner  *exec.Cmd       // the copy that runs, with this package's pipes
	ctx    context.Context // the caller's, with cancel
	cancel context.CancelCauseFunc
	caller context.Context // the caller's own
	merged mergedContext   // ctx, and the command's
	begun  time.Time

	simulated machine.Machine // nil on the system

	// The start. The caller's goroutine spawns the command, because threads have properties
	// that children inherit; the supervisor's goroutine runs the execution.
	entered  chan context.Context // the command's context, once the execution has begun
	running  context.Context      // the same, for the supervisor
	spawned  chan struct{}        // closed when tree or startErr is set
	tree     proctree.Tree
	startErr error
	inForce  proctree.Limits
	hostPeak int64 // of memory, after the start
	out      *capture.Capture
	unsay    func()  // ends what the output says for the execution
	work     watches // nil if work is not a sign of life
	stdin    waits.Input
	canWait  bool // for stdin
	input    inputWatch
	aborted  atomic.Bool // abort was called, for what the command did or for code of the caller's
	spill    *spillFile  // nil if no Spill was asked for
	notices  notices

	viewing chan struct{} // full while view is made; a channel, since a look takes its time
	view    ProcessList   // when a limit fired

	mu   sync.Mutex  // held while the tree is signalled
	over atomic.Bool // the tree must not be signalled any more; set before locking mu

	done   chan struct{} // closed when result and err are set and the hooks have been called
	result *Result
	err    error
}

// Wait waits until the command has ended, and returns its result. The error is nil if the command ended by itself
// with code 0. It is an [*exec.ExitError] if the command ended by itself in another way, and a [*timeout.Error] if
// it was stopped, with the command's own error in the Err field and the result in the Result field. If cmd.Stdin,
// cmd.Stdout or cmd.Stderr failed, the error also wraps the error of that reader or writer.
//
// After a limit has stopped the command, Wait returns at most 1 s after the end of the kill
// grace; see the guarantees of the package. Wait may be called more than once.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return p.result, p.err
}

// abort stops the command with err as the cause, for what it did or for code of the caller's.
func (p *Process) abort(err error) {
	p.aborted.Store(true)
	p.cancel(err)
}

// Input returns what is known about the command's wait for input: now or, if the command was stopped,
// at that time. It returns the zero InputWait after a command has ended by itself. Output takes back
// what was found before it, and so does input that was copied from cmd.Stdin or reported with
// [Process.Answered]. Input is safe for concurrent use.
func (p *Process) Input() InputWait { return p.input.now() }

// Answered says that input was written to the command in a way that this package does not see: to a
// pipe that the caller has made, or to that of [exec.Cmd.StdinPipe]. Call it after the write. The
// command is not known to wait until it has been examined again. Answered is safe for concurrent use.
func (p *Process) Answered() { p.input.noteInput() }

// Notices returns what the command has said of itself so far.
func (p *Process) Notices() Notices { return p.notices.snapshot() }

// Ready returns a channel that is closed when the command says READY=1 on the socket of [Notify]. The end of the
// command does not close it.
func (p *Process) Ready() <-chan struct{} { return p.notices.ready }

// Stopping returns a channel that is closed when the command says STOPPING=1 on the socket of [Notify]. The end of the
// command does not close it.
func (p *Process) Stopping() <-chan struct{} { return p.notices.stopping }
