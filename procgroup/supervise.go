package procgroup

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// supervise runs on a separate goroutine from before the start until the result is complete. The
// execution decides how the command is stopped, and conclude determines how it ended.
func (p *Process) supervise(ctx context.Context) {
	defer p.cancel(nil) // asks the caller's context, so not before the result can be had
	defer close(p.done)
	p.err = timeout.ErrGoexit // in case a hook ends this goroutine before the execution has begun
	c := &command.Command{
		Name:  strings.TrimSuffix(filepath.Base(p.cmd.Path), ".exe"),
		Total: p.limits.Total, Idle: p.limits.Idle, Reserve: p.limits.Reserve,
		Grace: p.grace(), Describe: p.describe, Conclude: p.conclude,
	}
	p.err = command.Run(ctx, c, p.await, p.options)
}

// await waits until the command has ended or must be stopped.
func (p *Process) await(ctx context.Context) error {
	p.running = ctx
	p.entered <- ctx
	<-p.spawned
	if p.startErr != nil {
		return p.startErr
	}
	p.watchWork(ctx)
	p.watchInput(ctx)
	stop := p.watchClosing(ctx)
	p.tree.Wait(ctx, time.Time{})
	stop()
	return nil
}

// conclude makes the result and the error of the call. outcome is that of the execution, and nil if
// the command has ended by itself.
func (p *Process) conclude(outcome error) (left []slog.Attr, leftovers string, final error) {
	stop, _ := outcome.(*timeout.Error)
	switch {
	case p.tree != nil:
		p.end(stop)
		left, leftovers = p.left(), p.result.Leftovers()
	case p.startErr != nil && !contextError(p.startErr):
		p.err = p.startErr // even if a limit has fired meanwhile
	default:
		p.err = outcome
	}
	return left, leftovers, p.err
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
	if fn := p.inputOption.Notify; fn != nil {
		w.teller = &teller{fn: fn, fail: p.abort}
		w.notify = w.teller.tell
	}
	if p.inputOption.Stop {
		w.stop = func() { p.abort(&commandStop{reason: WaitingForInput}) }
	}
	w.stopped = func(pid int) {
		p.abort(&commandStop{reason: StoppedByTerminal, pid: pid})
	}
	w.start()
}

// watchWork begins to measure the work of the tree, if the activity asks for it. ctx is the context of
// the command's execution.
func (p *Process) watchWork(ctx context.Context) {
	p.work = startWatches(ctx, p.activity, p.tree.Meter)
}

// watchClosing sends the closing signal when ctx, the context of the command's execution, is closing.
// After the call of stop nothing is sent.
func (p *Process) watchClosing(ctx context.Context) (stop func()) {
	if p.closing == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-timeout.Closing(ctx):
		case <-ctx.Done():
			return
		case <-over:
			return
		}
		// If several are ready, select takes any of them: the limit and the end win.
		select {
		case <-over:
		default:
			if ctx.Err() == nil {
				// There is nobody to tell of an error: the command has ended, or cannot be asked.
				_ = p.Signal(p.closing)
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
