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

// These are the deadlines of the steps in the second that SPEC 6.11 allows after the grace. All of them count from the
// end of the grace, so that delays do not add up.
const (
	drainTime  = 300 * time.Millisecond // until processes that outlive the command, and may hold its pipes, are killed
	killTime   = 650 * time.Millisecond // until the killed processes must be gone
	outputTime = 800 * time.Millisecond // until the output must have been read
	finishTime = 900 * time.Millisecond // until the callback and Input.Notify must have returned, and files been closed
)

// end kills the rest of the tree, reads the rest of the output, and sets p.result and p.err. stop is the error of the
// execution, and nil if the command has ended by itself.
func (p *Process) end(stop *timeout.Error) {
	defer p.unsay()
	begun := time.Now()
	p.work.end()
	p.input.end(stop != nil)
	r := &Result{Reason: reason(stop), Message: p.message(stop), LongestGap: p.out.LongestSilence(begun)}
	// The caller's writers may use the whole grace, even if the tree ends earlier.
	grace, impatient := p.killGrace, context.Background()
	var over time.Time // the end of the grace
	switch {
	case stop == nil:
		// The call must return within the grace and a second, as if a limit had fired now. The processes that are left
		// get a part of that grace only if the host is so busy that reading the pipes takes longer than drainTime.
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
		p.describe(true) // not in stopForOutput: a look takes long, and the reader of the output must not wait for it
		over = p.terminate(r, grace, false)
	default:
		grace = max(p.stop.AbortDelay, 0)
		over = p.terminate(r, grace, false)
	}
	// Killed processes have released the pipes. Orphans keep them, so there is nothing more to read.
	if stop != nil || (r.PipeHeld && !p.stop.Orphans) {
		until := over.Add(outputTime)
		p.out.Drain(until, until)
	}
	end := p.out.Finish(impatient, begun.Add(grace).Add(outputTime), over.Add(finishTime))
	p.input.teller.finish(over.Add(finishTime))
	p.notices.end(over.Add(finishTime))
	r.Notices = p.Notices()
	r.PipeHeld = r.PipeHeld || end.Held
	r.Unwritten, r.Skipped = end.Unwritten, end.Skipped
	if p.spill != nil {
		r.Spill = p.spill.end(end.Spill, over.Add(finishTime))
	}
	err := end.Err
	if stop == nil || end.Callback != stop.Cause { // the cause of the stop need not be reported twice
		err = errors.Join(err, end.Callback)
	}
	stdout, stderr, combined := p.out.Kept(stop != nil)
	r.Stdout, r.Stderr, r.Combined = newOutput(stdout), newOutput(stderr), newOutput(combined)
	r.Stacks = newOutput(p.out.Stacks())
	r.Contained = Containment(p.tree.Contained().String())
	r.Resources = resourcesOf(p.inForce)
	total := p.tree.Total()
	if stop == nil && total.Starved {
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
	leader := r.State
	if stop != nil || r.Contained == Helper || r.Contained == HelperTree { // killed processes lack, or the helper is in it
		leader = nil
	}
	r.Usage = usage(total, leader, p.hostPeak)
	r.Unanswered = p.tree.Unanswered() + p.input.late() + p.work.late()
	if stdin, file := p.cmd.Stdin.(*os.File); file {
		r.Unanswered += patient.Unanswered(stdin)
	}
	p.input.thenClose(func() { p.work.thenClose(p.tree.Close) })
	r.Elapsed = time.Since(p.begun)
	p.result = r
}

// whileAwaited returns a context that is done when the caller no longer waits for the result: when the caller's context
// or the context of exec.CommandContext is done, or cancel is called. A call of [Process.abort] does not end it,
// because the command has already ended by itself. The methods of the caller's contexts may block, so only a separate
// goroutine calls them.
func (p *Process) whileAwaited() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer func() { _ = recover() }() // a panic in a method of such a context must not end the program
		var command <-chan struct{}      // watched, because os/exec watches it only until the leader is reaped
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

// terminate asks the tree to end, waits for at most grace, and kills what is left. If stacks is set, the programs first
// write their stacks. It sets Escalated, Survivors and Unidentified of r, and returns the time of the kill.
func (p *Process) terminate(r *Result, grace time.Duration, stacks bool) time.Time {
	deadline := time.Now().Add(grace) // before Ask, which may look at all processes of the system
	if stacks {
		p.writeStacks(grace)
	}
	if grace > 0 && p.stopSignal != syscall.SIGKILL && p.tree.Ask(p.stopSignal) {
		// Descendants have the whole grace to end, even if the leader has ended before.
		r.Escalated = !p.tree.Wait(context.Background(), deadline) || !proctree.AwaitEmpty(p.tree, deadline)
	}
	p.noMoreSignals()
	over := time.Now()
	r.Survivors, r.Unidentified = p.tree.Kill(over.Add(killTime))
	return over
}
