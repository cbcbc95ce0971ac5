package procgroup

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/machine"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Run starts cmd with [Start] and waits for it with [Process.Wait]. The Result is nil only if the command was not
// started.
func Run(ctx context.Context, cmd *exec.Cmd, opts ...Option) (*Result, error) {
	p, err := Start(ctx, cmd, opts...)
	if err != nil {
		return nil, err
	}
	return p.Wait()
}

// Start starts cmd and supervises it. The limits hold even if [Process.Wait] is never called. Start waits for the hooks
// Context and Started; see [timeout.Hooks].
//
// The option [Limits] and the executions that ctx belongs to limit the command. Output on either stream is a heartbeat
// for the command's execution and for all enclosing ones. After a limit, every process of the command's tree is asked
// to end, and killed after the kill grace. If ctx is done for another reason, the tree is killed at once, unless [Stop]
// has an AbortDelay.
//
// Prepare cmd as for cmd.Start; the package documentation lists the differences: the writers of cmd get the output as
// well, the command runs in its own session without a terminal, and a context of [exec.CommandContext] has the effect
// of ctx. cmd.Process is set when Start returns, and cmd.ProcessState before Wait returns. Do not call cmd.Start,
// cmd.Wait or cmd.Process.Wait.
//
// If the command cannot be started, Start returns the error of os/exec; [timeout.ExitCode] of it is 127 if the command
// was not found, and 126 if it cannot be executed. As with os/exec, a Cmd cannot be started again, even if the start
// failed. If ctx is already done, Start starts nothing and returns a [*timeout.Error]. For an invalid option it returns
// a [*timeout.ConfigError]. The calling goroutine spawns the command.
//
// If the file system of cmd.Dir, of cmd.Path or of the socket of [Notify] does not answer, Start waits until it answers,
// or until a limit or ctx ends the execution and nothing is started. The package documentation lists the exceptions.
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
	if err := p.activity.Check(); err != nil {
		return nil, err
	}
	if command.StarterOf(ctx) != nil {
		ctx = command.WithStarter(ctx, nil) // it is not that of a command which a hook starts in this context
	}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.merged = mergedContext{Context: p.ctx, command: contextOf(cmd)}
	if command := p.merged.command; command != nil && command.Err() == context.DeadlineExceeded {
		p.cancel(p.merged.commandEnded(nil))
	}
	go p.supervise(&p.merged)
	select { // if both are ready, ctx has ended, and spawn starts nothing
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
	return p
}

// neverStart calls cmd.Start with an error in cmd.Err, so that os/exec closes both ends of [exec.Cmd.StdinPipe] and
// refuses to start cmd from then on. There is no other way to achieve either. A second call changes nothing.
func neverStart(cmd *exec.Cmd) {
	err := cmd.Err
	cmd.Err = errors.New("not to be started")
	_ = cmd.Start()
	cmd.Err = err
}

// errNoCommand has the text of os/exec's error for a command without a path. It wraps exec.ErrNotFound, so that its
// exit code is 127, as SPEC 6.10 demands.
var errNoCommand error = noCommandError{}

type noCommandError struct{}

func (noCommandError) Error() string { return "exec: no command" }

func (noCommandError) Unwrap() error { return &exec.Error{Err: exec.ErrNotFound} }

// spawn starts the command. ctx is the context of its execution. If spawn returns an error, no process was started.
func (p *Process) spawn(ctx context.Context) (err error) {
	inner := *p.cmd
	p.inner = &inner
	if err := ctx.Err(); err != nil {
		return err
	}
	config := capture.Config{
		Head: p.capture.Head, Max: max(cmp.Or(p.capture.Tail, defaultTail), 0), OnePipe: p.capture.OnePipe,
		Terminal: p.terminal, Begun: p.begun, Fail: p.abort, Limit: p.capture.Limit, Exceeded: p.stopForOutput,
		Fed: p.input.noteInput, Refused: refused,
	}
	beat := heartbeat.FromContext(ctx).Beat
	config.Beat = func() {
		p.input.noteActivity() // first: no observer of the beat may still find the wait that the output has ended
		beat()
	}
	if fn := p.capture.Each; fn != nil {
		config.Output = func(c capture.Chunk) { fn(Chunk(c)) }
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
	// os/exec watches the context of exec.CommandContext only once the command has been started.
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, other := range []context.Context{p.merged.command, command.StarterOf(p.caller)} {
		if other != nil {
			defer context.AfterFunc(other, cancel)()
		}
	}
	if sim == nil {
		if err := awaitFiles(all, &inner); err != nil {
			return p.startFailure(ctx, err)
		}
	}
	if checksDir(&inner) {
		inner.Err = checkDir(inner.Dir) // inner.Start returns it
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
		if err := p.notices.offer(all, &inner); err != nil {
			return p.startFailure(ctx, err)
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

// awaitFiles waits until the file systems of cmd.Dir and cmd.Path answer, and then returns nil, even if a file does not
// exist. If ctx is done first, it returns the error of ctx. Without this wait, the child would block in chdir(2) or
// execve(2) while the thread that forked it holds syscall.ForkLock, and no other command could be started.
func awaitFiles(ctx context.Context, cmd *exec.Cmd) error {
	if cmd.Err != nil || cmd.Path == "" {
		return nil
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

// checksDir reports whether os/exec would check the directory of cmd. This package sets SysProcAttr before it calls
// os/exec, which then no longer does.
func checksDir(cmd *exec.Cmd) bool { return cmd.Dir != "" && cmd.SysProcAttr == nil && cmd.Err == nil }

// checkDir returns the error of os/exec for a directory that does not exist or cannot be examined, or nil. The error
// names the directory. checkDir may block on the directory's file system.
func checkDir(dir string) error {
	_, err := os.Stat(dir)
	if failed := (*os.PathError)(nil); errors.As(err, &failed) {
		return &os.PathError{Op: "chdir", Path: failed.Path, Err: failed.Err}
	}
	return err
}

// startFailure returns err, the error with which the start failed. If err is the error of a context, startFailure first
// ends the execution, and waits until ctx, the context of the execution, is done.
func (p *Process) startFailure(ctx context.Context, err error) error {
	if contextError(err) {
		p.cancel(p.merged.endedBy(command.StarterOf(p.caller), p.merged.commandEnded(err)))
		<-ctx.Done()
	}
	return err
}

// commandContextDone cancels the execution, because the context of exec.CommandContext is done. That context may be the
// caller's context or one of its ancestors. Then the caller's context ends too, a moment later because a context is
// done before it cancels its children, and cancels the execution with its own cause. So commandContextDone first waits
// up to 10 ms for that end. os/exec calls it as cmd.Cancel.
func (p *Process) commandContextDone(ctx context.Context) error {
	moment := time.NewTimer(10 * time.Millisecond)
	defer moment.Stop()
	select { // an end that has reached the execution wins: cancel then does nothing
	case <-p.caller.Done():
	case <-ctx.Done():
	case <-moment.C:
		p.cancel(p.merged.commandEnded(context.Canceled))
	}
	return os.ErrProcessDone // tells os/exec that there is nothing to kill
}

// stopForOutput stops the command because it has written too much. It has no effect if the command has ended.
func (p *Process) stopForOutput() {
	<-p.spawned // the processes can be listed only after it; the wait is short, because the command already runs
	p.abort(&commandStop{reason: TooMuchOutput})
}
