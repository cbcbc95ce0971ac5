package procgroup

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The steps in the second that SPEC 6.11 leaves after the grace. Their times are counted from the same
// instant, so that they cannot add up.
const (
	collectTime = 1 * time.Second

	drainTime  = 300 * time.Millisecond // to read the output, before processes that hold the pipes are killed
	killTime   = 650 * time.Millisecond // until the killed processes must be gone
	outputTime = 800 * time.Millisecond // until the output must have been read
	finishTime = 900 * time.Millisecond // until the callback must have returned
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

// contextError reports whether os/exec refused to start the command because the context of
// exec.CommandContext was done. os/exec does not wrap that error.
func contextError(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded
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

// left returns the attributes of the warning about an incomplete end, if there is anything to warn of. What
// Orphans keep is what the caller wanted.
func (p *Process) left() (attrs []slog.Attr) {
	r := p.result
	if len(r.Killed.Processes) > 0 {
		attrs = append(attrs, slog.String("killed", r.Killed.names()))
	}
	if len(r.Survivors) > 0 {
		attrs = append(attrs, slog.Any("survivors", r.Survivors))
	}
	if r.PipeHeld && !p.stop.Orphans {
		attrs = append(attrs, slog.Bool("pipe_held", true))
	}
	if r.Unanswered > 0 {
		attrs = append(attrs, slog.Int("unanswered", r.Unanswered))
	}
	if r.Unwritten > 0 {
		attrs = append(attrs, slog.Int64("unwritten", r.Unwritten))
	}
	return attrs
}

// end kills the rest of the tree, reads the rest of the output, and makes the result.
func (p *Process) end(stop *timeout.Error) {
	defer p.unsay()
	begun := time.Now()
	p.work.end()
	p.input.end(stop != nil)
	r := &Result{Reason: reason(stop), Message: p.message(stop), LongestGap: p.out.LongestSilence(begun)}
	// The caller's writers have the rest of the grace, even if the tree does not need it.
	grace, impatient := p.killGrace, context.Background()
	var over time.Time // when the tree was killed
	switch {
	case stop == nil:
		// The call must return within the grace and a second, as if a limit had fired now. The tree
		// gets a part of that grace only if the host is so busy that reading the pipes takes longer
		// than drainTime.
		var cancel context.CancelFunc
		impatient, cancel = p.whileAwaited()
		defer cancel()
		p.noMoreSignals()
		r.PipeHeld = p.out.Drain(begun.Add(drainTime), begun.Add(grace))
		over = begun.Add(min(max(time.Since(begun)-drainTime, 0), grace))
		left := newProcessList(p.tree.Others(time.Now().Add(viewTime)))
		r.left = left.Processes
		if p.stop.Orphans {
			r.Kept = left
			p.tree.Release(time.Now().Add(killTime))
		} else {
			r.Survivors, r.Unidentified = p.tree.Kill(over.Add(killTime))
			r.Killed = left.without(slices.Concat(r.Survivors, r.Unidentified)) // which may run on
		}
	case stop.Timeout():
		over = p.terminate(r, grace, p.stop.Stacks)
	case stopOf(stop) != nil:
		p.describe(true) // here, and not where it was stopped: a look takes its time, and the reader of the output has none
		over = p.terminate(r, grace, false)
	default:
		grace = max(p.stop.AbortDelay, 0)
		over = p.terminate(r, grace, false)
	}
	// Processes that were killed release the pipes; orphans were given time above.
	if stop != nil || (r.PipeHeld && !p.stop.Orphans) {
		until := over.Add(outputTime)
		p.out.Drain(until, until)
	}
	end := p.out.Finish(impatient, begun.Add(grace).Add(outputTime), over.Add(finishTime))
	p.input.finish(over.Add(finishTime))
	p.notices.end(over.Add(finishTime))
	r.Notices = p.Notices()
	r.PipeHeld = r.PipeHeld || end.Held
	r.Unwritten, r.Skipped = end.Unwritten, end.Skipped
	if p.spill != nil {
		r.Spill = p.spill.end(end.Spill, over.Add(finishTime))
	}
	err := end.Err
	if stop == nil || end.Callback != stop.Cause { // unless that is the cause already
		err = errors.Join(err, end.Callback)
	}
	stdout, stderr, combined := p.out.Kept(stop != nil)
	r.Stdout, r.Stderr, r.Combined = newOutput(stdout), newOutput(stderr), newOutput(combined)
	r.Stacks = newOutput(p.out.Stacks())
	r.Contained = Containment(p.tree.Contained().String())
	r.Resources = p.limitsInForce()
	if total := p.tree.Total(); stop == nil && total.Starved {
		r.Reason, r.Message = OutOfMemory, p.ranOut(total.AtLimit)
	}
	if stop != nil {
		r.Input = p.input.at(stop)
	}
	if stop != nil && (stop.Timeout() || stopOf(stop) != nil) {
		p.viewing <- struct{}{}
		r.Tree = p.view
		<-p.viewing
	}
	p.complete(r, stop, err)
	r.Usage = p.usage(r, stop)
	r.Unanswered = p.tree.Unanswered() + p.input.late() + p.work.late()
	if stdin, file := p.cmd.Stdin.(*os.File); file {
		r.Unanswered += patient.Unanswered(stdin)
	}
	p.input.thenClose(func() { p.work.thenClose(p.tree.Close) })
	r.Elapsed = time.Since(p.begun)
	p.result = r
}

// whileAwaited returns a context that ends when nobody waits for the result any more: with the caller's, or with that of
// exec.CommandContext. An abort that comes when the command has ended by itself is too late, and does not end it. The
// caller's contexts are asked on a goroutine of its own, because they may be code that blocks.
func (p *Process) whileAwaited() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer func() { _ = recover() }() // whatever such a context does, the command ends as it would
		var command <-chan struct{}      // os/exec watches this context only until the leader is reaped
		if p.merged.command != nil {
			command = p.merged.command.Done()
		}
		select {
		case <-p.ctx.Done():
		case <-command:
		case <-ctx.Done():
		}
		if p.aborted.Load() {
			select {
			case <-p.caller.Done():
			case <-command:
			case <-ctx.Done():
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// terminate stops the tree, after its programs have written their stacks if Stacks is set. It returns the time at which
// the grace was over.
func (p *Process) terminate(r *Result, grace time.Duration, stacks bool) time.Time {
	deadline := time.Now().Add(grace) // before Ask, which may look at all processes of the system
	if stacks {
		p.writeStacks(grace)
	}
	if grace > 0 && p.stopSignal != syscall.SIGKILL && p.tree.Ask(p.stopSignal) {
		// Descendants that handle the request have the grace even if the leader did not wait for
		// them.
		r.Escalated = !p.tree.Wait(context.Background(), deadline) || !proctree.AwaitEmpty(p.tree, deadline)
	}
	p.noMoreSignals()
	over := time.Now()
	r.Survivors, r.Unidentified = p.tree.Kill(over.Add(killTime))
	return over
}

// usage returns what the tree has used.
func (p *Process) usage(r *Result, stop *timeout.Error) Usage {
	leader := r.State
	if stop != nil || r.Contained == Helper || r.Contained == HelperTree { // the figures include those of the helper
		leader = nil
	}
	return usage(p.tree.Total(), leader, p.hostPeak)
}

// complete sets the rest of the result, and the error. fromCaller is the error of the caller's reader
// and writers.
func (p *Process) complete(r *Result, stop *timeout.Error, fromCaller error) {
	err, reaped := p.tree.State()
	if reaped {
		r.State = p.inner.ProcessState
		p.cmd.ProcessState = r.State
	}
	switch {
	case r.Reason == OutOfMemory:
		s := timeout.FromContext(p.running).Snapshot()
		figures := &timeout.Error{Limits: s.Limits, Elapsed: s.Elapsed, LongestGap: s.LongestGap, Beats: s.Beats, Detail: s.Detail}
		p.err = &commandStop{reason: r.Reason, is: ErrMemory, message: r.Message, err: errors.Join(err, fromCaller), result: r, figures: figures}
	case stopOf(stop) != nil:
		p.err = &commandStop{reason: r.Reason, is: stopOf(stop).is, message: r.Message, err: errors.Join(err, fromCaller), result: r, figures: stop}
	case stop != nil:
		if stop.Err = err; fromCaller != nil {
			stop.Err = errors.Join(err, fromCaller)
		}
		stop.Result = r
		stop.Stack = withStacks(stop.Stack, r)
		p.err = stop
	case !reaped:
		p.err = errors.Join(errors.New("procgroup: the command has ended, but its exit status is unknown"), fromCaller)
	case err != nil && fromCaller != nil:
		p.err = errors.Join(err, fromCaller) // the failed writer may be why the command failed
	case err != nil:
		p.err = err
	default:
		p.err = fromCaller
	}
	if fromCaller == nil || stop != nil && stopOf(stop) == nil { // a timeout.Error does not look at the errors in it
		r.ExitCode = timeout.ExitCode(p.err)
		return
	}
	final := p.err
	r.ExitCode = beside(func() int { return timeout.ExitCode(final) }, exitCode(r.Reason, err))
}

// exitCode returns the exit code without the errors of the caller's reader and writers. err is that of the command.
func exitCode(reason Reason, err error) int {
	if reason == Exited {
		return max(timeout.ExitCode(err), 1)
	}
	return reason.exitCode()
}

// beside calls f on another goroutine and returns its value, or otherwise if f does not return in a moment: f calls
// methods of the caller's errors, which may block.
func beside[T any](f func() T, otherwise T) T {
	value := make(chan T, 1)
	go capture.Guard(func() { value <- f() }, func(error) { value <- otherwise })
	moment := time.NewTimer(beginTime)
	defer moment.Stop()
	select {
	case v := <-value:
		return v
	case <-moment.C:
		return otherwise
	}
}
