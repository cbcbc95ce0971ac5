package procgroup

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The steps in the second that SPEC 6.11 leaves after the grace. Their times are counted from the same
// instant, so that they cannot add up.
const (
	drainTime  = 300 * time.Millisecond // to read the output, before processes that hold the pipes are killed
	killTime   = 650 * time.Millisecond // until the killed processes must be gone
	outputTime = 800 * time.Millisecond // until the output must have been read
	finishTime = 900 * time.Millisecond // until the callback must have returned
)

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
			r.Killed = left.without(slices.Concat(r.Survivors, r.Unidentified)) // neither of these two was killed
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
	r.Resources = resourcesOf(p.inForce)
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

// whileAwaited returns a context that ends when nobody waits for the result any more: with the caller's, or with
// that of exec.CommandContext. An abort that comes when the command has ended by itself is too late, and does not
// end it. The caller's contexts are asked on a goroutine of its own, because they may be code that blocks.
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
