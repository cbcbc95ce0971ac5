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

// supervise runs the command's execution on its own goroutine, from before the start until the result is complete. It
// sets p.err and closes p.done.
func (p *Process) supervise(ctx context.Context) {
	defer p.cancel(nil) // after close(p.done), because cancel calls the caller's context, which may block
	defer close(p.done)
	p.err = timeout.ErrGoexit // remains if a hook ends this goroutine before the execution has begun
	c := &command.Command{
		Name:  strings.TrimSuffix(filepath.Base(p.cmd.Path), ".exe"),
		Total: p.limits.Total, Idle: p.limits.Idle, Reserve: p.limits.Reserve,
		Grace: p.grace(), Describe: p.describe, Conclude: p.conclude,
	}
	p.err = command.Run(ctx, c, p.await, p.options)
}

// await waits for the start, begins to watch the command, and returns nil once the command's own process has ended or
// ctx is done. If the start failed, it returns the error of the start.
func (p *Process) await(ctx context.Context) error {
	p.running = ctx
	p.entered <- ctx
	<-p.spawned
	if p.startErr != nil {
		return p.startErr
	}
	p.work = startWatches(ctx, p.activity, p.tree.Meter)
	p.watchInput(ctx)
	stop := p.watchClosing(ctx)
	p.tree.Wait(ctx, time.Time{})
	stop()
	return nil
}

// conclude ends the tree, and sets the result and the error of the call. outcome is the error of the execution: nil if
// the command has ended by itself. conclude returns attributes and a text about what is left of the command, and the
// error.
func (p *Process) conclude(outcome error) (left []slog.Attr, leftovers string, final error) {
	stop, _ := outcome.(*timeout.Error)
	switch {
	case p.tree != nil:
		p.end(stop)
		left, leftovers = p.left(), p.result.Leftovers()
	case p.startErr != nil && !contextError(p.startErr):
		p.err = p.startErr // wins over a limit that has fired during the start
	default:
		p.err = outcome
	}
	return left, leftovers, p.err
}

// watchInput begins to examine whether the command waits for input, if its input can make it wait. ctx is the context
// of the command's execution.
func (p *Process) watchInput(ctx context.Context) {
	newMeter := func() waits.Meter { return waits.Watch(p.tree, p.stdin) }
	if sim := p.simulated; sim != nil {
		newMeter = func() waits.Meter { return sim.WatchInput(p.tree) }
	} else if !p.canWait && !proctree.HasTerminal(p.tree) {
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
	}
	if p.inputOption.Stop {
		w.stop = func() { p.abort(&commandStop{reason: WaitingForInput}) }
	}
	w.stopped = func(pid int) {
		p.abort(&commandStop{reason: StoppedByTerminal, pid: pid})
	}
	w.start()
}

// watchClosing sends the closing signal, if there is one, when ctx, the context of the command's execution, is closing
// and has not ended; see [timeout.Closing]. stop waits for a signal that is being sent, and no signal is sent after it.
// It must be called exactly once.
func (p *Process) watchClosing(ctx context.Context) (stop func()) {
	if p.stop.Closing == nil {
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
		// If several channels were ready, select took any of them. The limit and the end win over the closing.
		select {
		case <-over:
		default:
			if ctx.Err() == nil {
				// No caller waits for the error: the command has ended, or the system cannot signal it.
				_ = p.Signal(p.stop.Closing)
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
