package procgroup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Run starts cmd with [Start] and waits for it with [Process.Wait]. If the command was
// started, the Result is not nil, even if there is an error.
func Run(ctx context.Context, cmd *exec.Cmd, opts ...Option) (*Result, error) {
	p, err := Start(ctx, cmd, opts...)
	if err != nil {
		return nil, err
	}
	return p.Wait()
}

// Start starts cmd and supervises it. The supervision does not depend on Wait being called.
//
// The limits are those of the option [Limits], or of the execution that ctx belongs to. Output on either stream is
// a heartbeat for the command's execution and for all enclosing ones. The command is stopped when ctx is done:
// after a limit every process of the tree is asked to end, and killed after the kill grace; otherwise the tree is
// killed at once; see [Stop].
//
// A Cmd is prepared as for cmd.Start, with the differences that the page of the package lists: its writers get the
// output as well, it runs in a session of its own without a terminal, and a context of [exec.CommandContext] counts
// as ctx does. Process is set when Start returns, and ProcessState before Wait returns. Do not call cmd.Start,
// cmd.Wait or cmd.Process.Wait.
//
// If the command cannot be started, Start returns the error of os/exec; [timeout.ExitCode] of it is 127 if the
// command was not found, and 126 if it cannot be executed. As with os/exec, a Cmd cannot be started again, even if
// the start failed. If ctx is already done, nothing is started and the error is a [*timeout.Error]. An option that
// is invalid is a [*timeout.ConfigError]. The command is spawned on the calling goroutine.
//
// If the file system of cmd.Dir or cmd.Path does not answer, Start waits for it until a limit or ctx ends the
// execution, and nothing is started then; see the page of the package for the exceptions.
//
// Start panics with a [*timeout.ConfigError] if ctx or cmd is nil.
func Start(ctx context.Context, cmd *exec.Cmd, opts ...Option) (_ *Process, err error) {
	if ctx == nil {
		panic(&timeout.ConfigError{Key: "context", Value: "nil", Accepted: "one that is not nil"})
	}
	if cmd == nil {
		panic(&timeout.ConfigError{Key: "command", Value: "nil", Accepted: "one that is not nil"})
	}
	if cmd.Process != nil {
		return nil, errors.New("exec: already started")
	}
	defer func() {
		if err != nil {
			neverStart(cmd)
		}
	}()
	p := newProcess(ctx, cmd, opts)
	if p.settings.err != nil {
		return nil, p.settings.err
	}
	if err := p.activity.check(); err != nil {
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.merged = mergedContext{Context: p.ctx, command: contextOf(cmd)}
	if command := p.merged.command; command != nil && command.Err() == context.DeadlineExceeded {
		p.cancel(p.merged.commandEnded(nil))
	}
	go p.supervise(&p.merged)
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

func newProcess(ctx context.Context, cmd *exec.Cmd, opts []Option) *Process {
	p := &Process{
		settings: newSettings(opts),
		cmd:      cmd,
		begun:    time.Now(),
		caller:   ctx,
		entered:  make(chan context.Context, 1),
		spawned:  make(chan struct{}),
		viewing:  make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	if p.notify.Socket {
		p.notices.ready, p.notices.stopping = make(chan struct{}), make(chan struct{})
	}
	return p
}

// neverStart makes os/exec treat cmd as a command that could not be started: os/exec closes both
// ends of [exec.Cmd.StdinPipe] and refuses to start cmd from then on. There is no other way to
// achieve either. A second call changes nothing.
func neverStart(cmd *exec.Cmd) {
	err := cmd.Err
	cmd.Err = errors.New("not to be started")
	_ = cmd.Start()
	cmd.Err = err
}

// errNoCommand is os/exec's error for a command without a path, except that its exit code is 127,
// as SPEC 6.10 demands.
var errNoCommand error = noCommandError{}

type noCommandError struct{}

func (noCommandError) Error() string { return "exec: no command" }

func (noCommandError) Unwrap() error { return &exec.Error{Err: exec.ErrNotFound} }

// spawn starts the command. ctx is the context of its execution.
func (p *Process) spawn(ctx context.Context) (err error) {
	inner := *p.cmd
	p.inner = &inner
	if err := ctx.Err(); err != nil {
		return err
	}
	config := capture.Config{Head: p.capture.Head, Max: p.capture.tail(), OnePipe: p.capture.OnePipe, Terminal: p.terminal, Begun: p.begun, Fail: p.abort, Limit: p.capture.Limit, Exceeded: p.stopForOutput, Fed: p.input.noteInput, Refused: refused}
	beat := heartbeat.FromContext(ctx).Beat
	config.Beat = func() {
		p.input.noteActivity() // first, so that nobody hears of the wait with this beat
		beat()
	}
	if fn := p.capture.Each; fn != nil {
		config.Output = func(c capture.Chunk) {
			fn(Chunk{Stderr: c.Stream == 1, Data: c.Data, Skipped: c.Skipped, Last: c.Last})
		}
	}
	if p.capture.Spill != nil {
		p.spill = &spillFile{dir: p.capture.Spill, max: p.capture.SpillMax}
		config.Spill = p.spill
	}
	sim := machine.Of(ctx)
	if sim != nil {
		config.Pipe, p.simulated = sim.Pipe, sim
	}
	if p.out, err = capture.Connect(&inner, config); err != nil {
		return err
	}
	p.unsay = pulse.Of(ctx).Voice(p.out.Line)
	defer func() {
		if err != nil {
			p.unsay()
			p.out.Discard()
			p.notices.end(time.Now().Add(collectTime))
		}
	}()
	if inner.Path == "" && inner.Err == nil {
		inner.Err = errNoCommand
	}
	inner.WaitDelay = 0
	if p.inputOption.Unattended {
		setUnattended(&inner)
	}
	if inner.Cancel != nil {
		inner.Cancel = func() error { return p.commandContextDone(ctx) }
	}
	if sim == nil {
		if err := p.awaitFiles(ctx, &inner); err != nil && ctx.Err() == nil {
			return p.startFailure(ctx, err) // the context of exec.CommandContext is done, and ctx is not
		} else if err != nil {
			return err
		}
	}
	if err := checkDir(&inner); err != nil {
		inner.Err = err // inner.Start returns it
	}
	if inner.Err != nil {
		return inner.Start()
	}
	if p.terminal != nil {
		if err := proctree.LeadTerminal(&inner, p.stop.Orphans); err != nil {
			return err
		}
	}
	if p.notify.Socket {
		if err := p.notices.offer(ctx, &inner); err != nil {
			return err
		}
	}
	if stdin, file := inner.Stdin.(*os.File); file {
		p.stdin, p.canWait = waits.InputOf(stdin)
	}
	if sim != nil {
		p.tree, err = sim.Start(ctx, &inner)
	} else {
		p.tree, p.inForce, err = proctree.StartWithin(ctx, &inner, p.kind, p.resources.limits())
	}
	if err != nil {
		return p.startFailure(ctx, err)
	}
	p.cmd.Process = inner.Process
	p.hostPeak = hostPeak()
	p.out.Start()
	return nil
}

// awaitFiles waits until the file systems of the directory and of the program of cmd answer, or a context is done,
// and then returns the error of that context. Without that, the child would wait in chdir(2) or execve(2): until
// then it keeps the thread that has forked it, and syscall.ForkLock, so that no other command can be started. Other
// errors are left to os/exec.
func (p *Process) awaitFiles(ctx context.Context, cmd *exec.Cmd) error {
	if cmd.Err != nil || cmd.Path == "" {
		return nil
	}
	if command := p.merged.command; command != nil {
		both, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(command, cancel)()
		ctx = both
	}
	dir, path := cmd.Dir, cmd.Path
	if dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return patient.Until(ctx, [2]string{dir, path}, func() {
		if dir != "" {
			_, _ = os.Stat(dir)
		}
		_, _ = os.Stat(path)
	})
}

// checkDir returns os/exec's error for a directory that does not exist, which names the directory.
// os/exec itself makes that error only if SysProcAttr is nil, which it never is here.
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

// startFailure returns err, an error of starting the command. If err is the error of the context of
// exec.CommandContext, which was already done, startFailure first ends the execution.
func (p *Process) startFailure(ctx context.Context, err error) error {
	if contextError(err) {
		p.cancel(p.merged.commandEnded(err))
		<-ctx.Done()
	}
	return err
}

// commandContextDone cancels the execution because the context of exec.CommandContext is done. If that context is
// the caller's or one of its ancestors, the end of the caller's context, which has the right cause, cancels the
// execution. commandContextDone waits a moment for that end: a context is done before it cancels the contexts
// derived from it.
func (p *Process) commandContextDone(ctx context.Context) error {
	moment := time.NewTimer(10 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-p.caller.Done():
	case <-ctx.Done():
	case <-moment.C:
		p.cancel(p.merged.commandEnded(context.Canceled))
	}
	return os.ErrProcessDone // tells os/exec that there is nothing to kill
}

// stopForOutput stops the command because it has written too much. It has no effect if the command has ended.
func (p *Process) stopForOutput() {
	<-p.spawned // soon, because there was output; before that the processes cannot be listed
	p.abort(&commandStop{reason: TooMuchOutput})
}
