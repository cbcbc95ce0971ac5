package procgroup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
)

// A Process is a command that was started. Its methods may be called by any number of
// goroutines.
type Process struct {
	settings
	cmd    *exec.Cmd       // the caller's
	inner  *exec.Cmd       // the one that runs, a copy with our pipes
	ctx    context.Context // the caller's, with our cancel
	cancel context.CancelCauseFunc
	caller context.Context // the caller's
	begun  time.Time

	// The start: the caller's goroutine spawns, because threads have properties that
	// children inherit; the supervisor's runs the execution. They meet here.
	entered  chan context.Context // the command's context, once the execution has begun
	spawned  chan struct{}        // closed when tree or startErr is set
	tree     proctree.Tree
	startErr error
	out      *capture.Capture
	work     watches // nil where work is no sign of life

	viewing sync.Mutex // held while the tree is looked at for view, see Tree
	view    Tree       // when a limit fired

	mu   sync.Mutex  // held while the tree is signalled
	over atomic.Bool // it must not be signalled any more; set before mu is waited for

	done   chan struct{} // closed when result and err are set, and everybody was told
	result *Result
	err    error
}

// Run is [Start] and then [Process.Wait]. The Result is there whenever the command was
// started, also with an error.
func Run(ctx context.Context, cmd *exec.Cmd, opts ...Option) (*Result, error) {
	p, err := Start(ctx, cmd, opts...)
	if err != nil {
		return nil, err
	}
	return p.Wait()
}

// Start starts cmd and supervises it from then on, whether or not Wait is called.
//
// The limits are those of [WithLimits], or of the execution that ctx belongs to. Output
// on either stream is a heartbeat for every execution around. The command is stopped
// when ctx is done: if a limit is the cause, everything is asked to end, by SIGTERM and
// SIGCONT on Unix (see [WithStopSignal]), and what is still there after the kill grace is
// killed; otherwise everything is killed at once, see [WithAbortGrace].
//
// cmd is prepared like any other, with these differences:
//
//   - Stdout and Stderr, where they are set, get the output too, and a writer that is
//     slow slows the command down. When the command has ended or was stopped, they have
//     the grace to take what is left; a writer that blocks for longer is left behind.
//     The error of Wait says so, and Result.Unwritten how much is missing. That an
//     *os.File is not handed to the command, as os/exec does, is because output that
//     goes past this process is no heartbeat.
//   - After an error of one of these writers its pipe is closed, as by os/exec, so that
//     the command gets SIGPIPE, or an error, where it writes on. What it writes then is
//     no heartbeat, and not in the Result. The error of Wait has that of the writer,
//     beside the command's own.
//   - Where both are the same writer there is one pipe, as with os/exec: see
//     [WithOnePipe].
//   - Stdin may be any reader, also one that blocks for ever; it is then left behind,
//     with one goroutine, until it returns. An *os.File is given to the command as it
//     is. [exec.Cmd.StdinPipe] works too, StdoutPipe and StderrPipe do not: their pipes
//     are closed at once. [Attach] is for them.
//   - SysProcAttr is extended, in a copy. The command gets a process group, so a
//     terminal's Ctrl-C does not reach it. Setsid and Foreground are respected. A Pgid
//     is refused.
//   - The context of [exec.CommandContext] aborts the command, as ctx does; Cancel and
//     WaitDelay are not used.
//   - Process is set on return, and ProcessState before Wait returns. Do not call
//     cmd.Start, cmd.Wait or cmd.Process.Wait.
//
// With the Descendants and Helper containments, and so often with Auto, the command
// finds a variable more in its environment.
//
// A command that cannot be started is an error at once, the one that os/exec has for it:
// [timeout.ExitCode] is 127 where it was not found and 126 where it cannot be executed. As
// with os/exec, a Cmd can be started only once, even if that failed. If
// ctx is done already, nothing is started, and the error is an [*timeout.Error]. The
// command is spawned on the calling goroutine.
//
// Start panics if ctx or cmd is nil.
func Start(ctx context.Context, cmd *exec.Cmd, opts ...Option) (_ *Process, err error) {
	if ctx == nil {
		panic("procgroup: nil context")
	}
	if cmd == nil {
		panic("procgroup: nil command")
	}
	if cmd.Process != nil {
		return nil, errors.New("exec: already started")
	}
	defer func() {
		if err != nil {
			neverStart(cmd)
		}
	}()
	p := &Process{
		settings: newSettings(opts),
		cmd:      cmd,
		begun:    time.Now(),
		caller:   ctx,
		entered:  make(chan context.Context, 1),
		spawned:  make(chan struct{}),
		done:     make(chan struct{}),
	}
	if p.settings.err != nil {
		return nil, p.settings.err
	}
	if err := p.activity.check(); err != nil {
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	go p.supervise(p.ctx)
	select {
	case ctx := <-p.entered:
		p.startErr = p.spawn(ctx)
		close(p.spawned)
		if p.startErr == nil {
			return p, nil
		}
	case <-p.done:
	}
	<-p.done
	return nil, p.err
}

// neverStart has os/exec treat cmd as one that could not be started: it closes both ends of
// [exec.Cmd.StdinPipe], and refuses to start cmd from then on. There is no other way to
// either; a second call changes nothing.
func neverStart(cmd *exec.Cmd) {
	err := cmd.Err
	cmd.Err = errors.New("not to be started")
	_ = cmd.Start()
	cmd.Err = err
}

// errNoCommand is what os/exec says of a command without a path, but for its exit code,
// which SPEC 6.10 makes 127.
var errNoCommand error = noCommandError{}

type noCommandError struct{}

func (noCommandError) Error() string { return "exec: no command" }

func (noCommandError) Unwrap() error { return &exec.Error{Err: exec.ErrNotFound} }

// Wait waits for the end and returns the result. The error is nil if the command ended
// by itself with code 0, an [*timeout.Error] if it was stopped, with the command's own
// end in its Err, and otherwise an [*exec.ExitError]. If cmd.Stdin, cmd.Stdout or
// cmd.Stderr failed, their error is in the tree of that, beside the command's own; if the
// command succeeded, it is all there is.
//
// Wait returns at the latest 1 s after the end of the grace that follows the limit that
// stopped the command; see the guarantees of the package. It may be called any number
// of times.
func (p *Process) Wait() (*Result, error) {
	<-p.done
	return p.result, p.err
}

// Pid is the process id of the command; with the Helper containment, of the helper. It
// is valid until Wait returns.
func (p *Process) Pid() int { return p.inner.Process.Pid }

// spawn starts the command. ctx is its execution's.
func (p *Process) spawn(ctx context.Context) (err error) {
	inner := *p.cmd
	p.inner = &inner
	if err := ctx.Err(); err != nil {
		return err
	}
	config := capture.Config{Max: p.maxOutput, OnePipe: p.onePipe, Begun: p.begun, Beat: heartbeat.FromContext(ctx).Beat, Fail: p.abort}
	if fn := p.onOutput; fn != nil {
		config.Output = func(c capture.Chunk) {
			fn(Chunk{Stream: Stream(c.Stream), Data: c.Data, Skipped: c.Skipped, Last: c.Last})
		}
	}
	if p.out, err = capture.New(&inner, config); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.out.Discard()
		}
	}()
	if inner.Path == "" && inner.Err == nil {
		inner.Err = errNoCommand
	}
	inner.WaitDelay = 0
	if inner.Cancel != nil {
		inner.Cancel = func() error { return p.commandContextDone(ctx) }
	}
	if err := checkDir(&inner); err != nil {
		inner.Err = err // returned by Start, unless it has been called before
	}
	if inner.Err != nil {
		return inner.Start()
	}
	if p.tree, err = proctree.Start(ctx, &inner, proctree.Kind(p.containment)); err != nil {
		return p.startFailure(ctx, err)
	}
	p.cmd.Process = inner.Process
	p.out.Start()
	return nil
}

// checkDir returns os/exec's error for a directory that is not there, which names it. os/exec
// itself makes it only where SysProcAttr is not set, and ours is.
func checkDir(cmd *exec.Cmd) error {
	if cmd.Dir == "" || cmd.SysProcAttr != nil || cmd.Err != nil {
		return nil
	}
	_, err := os.Stat(cmd.Dir)
	if failed := (*os.PathError)(nil); errors.As(err, &failed) {
		return &os.PathError{Op: "chdir", Path: failed.Path, Err: failed.Err}
	}
	return err
}

// startFailure makes an abort of the error that os/exec returns where the context of
// exec.CommandContext is done already.
func (p *Process) startFailure(ctx context.Context, err error) error {
	if contextError(err) {
		p.abort(err)
		<-ctx.Done()
	}
	return err
}

// commandContextDone is called when the context of exec.CommandContext is done. If that is
// the caller's context, or one that the caller's is made from, the execution learns of it
// too, and knows why; but a context tells those who wait for it before it cancels the
// contexts made from it, so it may take a moment.
func (p *Process) commandContextDone(ctx context.Context) error {
	moment := time.NewTimer(10 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-p.caller.Done():
	case <-ctx.Done():
	case <-moment.C:
		p.abort(context.Canceled)
	}
	return os.ErrProcessDone // this keeps os/exec out of it
}

// abort stops the command with err as the cause.
func (p *Process) abort(err error) { p.cancel(err) }
