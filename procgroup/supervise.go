package procgroup

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
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

// supervise runs on a goroutine of its own, from before the start to the result. The execution
// decides how the command is stopped, and conclude says how it ended.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.done)
	defer p.cancel(nil)
	p.err = timeout.ErrGoexit // if a hook ends this goroutine before there is an execution
	c := &command.Command{
		Name:  strings.TrimSuffix(filepath.Base(p.cmd.Path), ".exe"),
		Grace: p.grace(), Describe: p.describe, Conclude: p.conclude,
	}
	if p.limits != nil {
		c.Total, c.Idle = p.limits.Total, p.limits.Idle
	}
	p.err = command.Run(ctx, c, p.await, p.options)
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

// conclude makes the result and the error of the call from the outcome of the execution,
// nil where the command has ended by itself.
func (p *Process) conclude(outcome error) (left []slog.Attr, final error) {
	stop, _ := outcome.(*timeout.Error)
	switch {
	case p.tree != nil:
		p.end(stop)
		left = p.left()
	case p.startErr != nil && !contextError(p.startErr):
		p.err = p.startErr // even if a limit has fired since
	default:
		p.err = outcome
	}
	return left, p.err
}

// left is what the end of the command left to be desired, if anything.
func (p *Process) left() (attrs []slog.Attr) {
	r := p.result
	if len(r.Survivors) > 0 {
		attrs = append(attrs, slog.Any("survivors", r.Survivors))
	}
	if r.PipeHeld && !p.orphans {
		attrs = append(attrs, slog.Bool("pipe_held", true))
	}
	if r.Unwritten > 0 {
		attrs = append(attrs, slog.Int64("unwritten", r.Unwritten))
	}
	return attrs
}

// end ends what is left of the tree, collects the output and makes the result.
func (p *Process) end(stop *timeout.Error) {
	begun := time.Now()
	p.work.end()
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
	r.Contained = Containment(p.tree.Contained().String())
	if stop != nil && stop.Timeout() {
		p.viewing.Lock()
		r.Tree = p.view
		p.viewing.Unlock()
	}
	p.settle(r, stop, err)
	p.work.thenClose(p.tree.Close)
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
