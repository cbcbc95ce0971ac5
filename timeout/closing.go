package timeout

import (
	"context"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is about an execution that is closing: so little of its time is left that its function should take no new
// work (SPEC 3.20 to 3.22).

// Closing returns a channel that is closed when the innermost execution of ctx is closing: what is
// left of its total, of an enclosing total or of the caller's deadline is no more than the Reserve of
// its [Config]; an enclosing execution is closing; or [Execution.BeginClosing] has been called.
// Nothing is cancelled at that point. A function that finds the channel closed takes no new work,
// writes what it has, and returns:
//
//	select {
//	case job := <-jobs:
//		// ...
//	case <-timeout.Closing(ctx):
//		return save(partial)
//	case <-ctx.Done():
//		return ctx.Err()
//	}
//
// The end of the execution does not close the channel, so a select also needs ctx.Done. Closing
// returns the same channel at each call, and nil if ctx has no execution.
func Closing(ctx context.Context) <-chan struct{} {
	e := executionOf(pulse.Unmuted(ctx))
	if e == nil {
		return nil
	}
	return e.closes().begun
}

// BeginClosing makes the execution closing, and with it the executions within it, as if its reserve
// had been reached; see [Closing]. A server that is about to end calls it first, and [Execution.Abort]
// when it can wait no longer. BeginClosing reports whether this call has made the execution closing.
// It reports false if the execution was closing already, was stopped, or has ended.
func (e *Execution) BeginClosing() bool {
	if e == nil {
		return false
	}
	e.closes()
	return e.closeNow()
}

// closes returns the closing of e, which follows that of the enclosing executions from now on. If e is due
// to be closing, it is closing when closes returns, even if its timer is late.
func (e *Execution) closes() *closing {
	c := e.closingState()
	if !c.entered.Load() {
		e.enter(c, e.encloser())
	}
	if e.closesAt() <= e.cell.Now() {
		e.closeNow()
	}
	return c
}

// closingState returns the closing of e, and makes one if there is none yet.
func (e *Execution) closingState() *closing {
	if c := e.closing.Load(); c != nil {
		return c
	}
	e.closing.CompareAndSwap(nil, &closing{begun: make(chan struct{})})
	return e.closing.Load()
}

// enter makes c follow the state of outer, once.
func (e *Execution) enter(c *closing, outer *Execution) {
	c.enter.Do(func() {
		defer c.entered.Store(true)
		c.outer = outer
		if outer == nil {
			return
		}
		o := outer.closes()
		o.mu.Lock()
		over := o.over
		if !over {
			if o.inside == nil {
				o.inside = make(map[*Execution]struct{})
			}
			o.inside[e] = struct{}{}
		}
		o.mu.Unlock()
		switch {
		case over:
			e.closeNow()
		case e.cell.Ended():
			c.leave(e) // an earlier call of end has found nothing to leave
		}
	})
}

// leave undoes what enter has done to the enclosing execution. If the execution ends before enter has returned,
// enter calls leave itself.
func (c *closing) leave(e *Execution) {
	if c.outer == nil {
		return
	}
	if o := c.outer.closing.Load(); o != nil {
		o.mu.Lock()
		delete(o.inside, e)
		o.mu.Unlock()
	}
}

// closeNow makes the execution closing and delivers the reports. It returns false if the execution was
// closing already, was stopped, or has ended. The caller holds no lock.
func (e *Execution) closeNow() bool {
	all := e.beginClosing(nil)
	for _, x := range all {
		if x.hasHook(hookClosing) {
			x.reportClosing()
		}
	}
	return len(all) > 0
}

// beginClosing closes the channels of the execution and of the executions within it, and returns all with the
// executions appended whose channels were open. All channels are closed before the first hook is called.
func (e *Execution) beginClosing(all []*Execution) []*Execution {
	c := e.closingState()
	e.cell.Lock()
	c.mu.Lock()
	if e.decided || c.over {
		c.mu.Unlock()
		e.cell.Unlock()
		return all
	}
	c.over, c.at = true, e.cell.Now()
	inside := c.inside
	c.inside = nil
	close(c.begun)
	c.mu.Unlock()
	e.cell.Unlock()
	all = append(all, e)
	for x := range inside {
		all = x.beginClosing(all)
	}
	return all
}
