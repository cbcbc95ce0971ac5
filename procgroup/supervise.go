package procgroup

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/stacks"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// What happens in the second that SPEC 6.11 leaves after the grace. All of it is
// bounded by one instant, so that the parts cannot add up.
const (
	collectTime = 1 * time.Second

	drainTime  = 300 * time.Millisecond // for the output, before what holds the pipes is killed
	killTime   = 650 * time.Millisecond // until everything that was killed must be gone
	outputTime = 800 * time.Millisecond // until the output must have been collected
	finishTime = 900 * time.Millisecond // until callbacks must have returned
)

// engineGrace is the grace of the executions here. The engine must never abandon await,
// which may be waiting for a slow start: a command that comes into being after that would
// have nobody to end it. The bounds of the call are those of conclude.
const engineGrace = 1000 * time.Hour

// supervise runs on a goroutine of its own, from before the start to the result.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.done)
	defer p.cancel(nil)
	p.err = timeout.ErrGoexit // if the Started hook ends this goroutine
	err := p.execute(ctx)
	stop := p.outcome(err)
	switch {
	case p.tree != nil:
		p.conclude(stop)
	case p.startErr != nil && !contextError(p.startErr):
		p.err = p.startErr // even if a limit has fired since
	case stop != nil:
		p.err = stop
	default:
		p.err = err
	}
	p.report()
}

// execute decides how the command ended: nil is by itself, before any limit. What
// follows, such as killing and collecting output, happens outside, so that it neither
// needs the grace of the execution nor can change the outcome. Without limits of its own
// it still tells a limit around it, or a deadline, from an abort.
func (p *Process) execute(ctx context.Context) error {
	var limits timeout.Config
	if p.limits != nil {
		limits = *p.limits
	}
	limits.Grace = engineGrace
	opts := []timeout.Option{limits, timeout.WithName(p.name), timeout.WithLogger(p.log), timeout.WithHooks(p.engineHooks())}
	return timeout.Run(stacks.Replace(ctx, p.describe), p.await, opts...)
}

// await waits until the command has ended or is to be stopped.
func (p *Process) await(ctx context.Context) error {
	p.entered <- ctx
	<-p.spawned
	if p.startErr != nil {
		return p.startErr
	}
	p.watchWork(ctx)
	p.tree.Wait(ctx, time.Time{})
	return nil
}

// contextError reports whether os/exec refused to start because of the context of
// exec.CommandContext. It returns the bare error.
func contextError(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded
}

// timedOut returns a copy of err if it is the timeout of an execution, and otherwise nil.
// It is the cause of a context itself, and not something in its tree: code that gives a
// timeout it got from elsewhere as a reason to cancel means an abort.
func timedOut(err error) *timeout.Error {
	if e, ok := err.(*timeout.Error); ok && e.Timeout() {
		stop := *e
		return &stop
	}
	return nil
}

// outcome is how the command was stopped, nil if it was not. To the execution here a limit
// of one around it is the end of the caller's context; to the command it is a timeout.
func (p *Process) outcome(err error) *timeout.Error {
	stop, ok := err.(*timeout.Error)
	if !ok {
		return nil
	}
	if stop.Kind == timeout.Aborted {
		if outer := timedOut(stop.Cause); outer != nil {
			outer.Stack = nil // where the goroutines of its function were
			return outer
		}
	}
	stop.Limits.Grace = p.grace()
	return stop
}

// conclude ends what is left of the tree, collects the output and makes the result.
func (p *Process) conclude(stop *timeout.Error) {
	begun := time.Now()
	if stop != nil && stop.Timeout() && stop.Stack == nil {
		if stop.Stack = p.describe(); stop.Stack != nil {
			p.logAttrs(slog.LevelWarn, "what the command was doing", slog.String("tree", string(stop.Stack)))
		}
	}
	p.work.stop()
	r := &Result{Reason: reason(stop), Message: p.message(stop), LongestGap: p.out.LongestSilence(begun)}
	// The caller's writers get what is left of the grace, even if the tree does not need it.
	grace, impatient := p.killGrace, context.Background()
	var over time.Time // when everything was killed
	switch {
	case stop == nil:
		// All must be over a second after the grace of a limit that might have fired now. Of
		// that grace the tree gets something only where the host is so busy that the look at
		// the pipes takes longer than it should.
		impatient = p.ctx
		p.noMoreSignals()
		r.PipeHeld = p.out.Drain(begun.Add(drainTime), begun.Add(grace))
		over = begun.Add(min(max(time.Since(begun)-drainTime, 0), grace))
		if p.orphans {
			p.tree.Release(time.Now().Add(killTime))
		} else {
			r.Survivors, r.Unidentified = p.tree.Kill(over.Add(killTime))
		}
	case stop.Timeout():
		over = p.terminate(r, grace)
	default:
		grace = p.abortGrace
		over = p.terminate(r, grace)
	}
	// What was killed lets go of the pipes; what lives on was given its time.
	if stop != nil || (r.PipeHeld && !p.orphans) {
		until := over.Add(outputTime)
		p.out.Drain(until, until)
	}
	end := p.out.Finish(impatient, begun.Add(grace).Add(outputTime), over.Add(finishTime))
	r.PipeHeld = r.PipeHeld || end.Held
	r.Unwritten, r.Skipped = end.Unwritten, end.Skipped
	err := end.Err
	if stop == nil || end.Callback != stop.Cause { // which is there already
		err = errors.Join(err, end.Callback)
	}
	stdout, stderr, combined := p.out.Kept(stop != nil)
	r.Stdout, r.Stderr, r.Combined = newOutput(stdout), newOutput(stderr), newOutput(combined)
	r.Contained = Containment(p.tree.Contained())
	if stop != nil && stop.Timeout() {
		p.viewing.Lock()
		r.Tree = p.view
		p.viewing.Unlock()
	}
	p.settle(r, stop, err)
	p.tree.Close()
	r.Elapsed = time.Since(p.begun)
	p.result = r
}

// terminate stops the tree. It returns the instant at which the grace is over.
func (p *Process) terminate(r *Result, grace time.Duration) time.Time {
	deadline := time.Now().Add(grace) // to ask may take a look at all processes
	if grace > 0 && p.stopSignal != syscall.SIGKILL && p.tree.Ask(p.stopSignal) {
		// Who handles the request to end is given the time, even if the leader did not
		// wait for it.
		r.Escalated = !p.tree.Wait(context.Background(), deadline) || !proctree.AwaitEmpty(p.tree, deadline)
	}
	p.noMoreSignals()
	over := time.Now()
	r.Survivors, r.Unidentified = p.tree.Kill(over.Add(killTime))
	return over
}

// settle completes the result and makes the error. fromCaller is what went wrong with
// the caller's reader and writers.
func (p *Process) settle(r *Result, stop *timeout.Error, fromCaller error) {
	err, reaped := p.tree.State()
	if reaped {
		r.State = p.inner.ProcessState
		p.cmd.ProcessState = r.State
	}
	switch {
	case stop != nil:
		if stop.Err = err; fromCaller != nil {
			stop.Err = errors.Join(err, fromCaller)
		}
		p.err = stop
	case !reaped:
		p.err = errors.Join(errors.New("procgroup: the command has ended, but its exit status is not known yet"), fromCaller)
	case err != nil && fromCaller != nil:
		p.err = errors.Join(err, fromCaller) // a writer that has failed may be why the command did
	case err != nil:
		p.err = err
	default:
		p.err = fromCaller
	}
	r.ExitCode = timeout.ExitCode(p.err)
}
