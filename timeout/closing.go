package timeout

import (
	"context"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An execution is closing when so little of its time is left that its function should take no new work (SPEC 3.20 to
// 3.22).

// Closing returns a channel that is closed when the innermost execution of ctx begins to close. That is when no more
// than the Reserve of its [Config], if there is one, is left of its total (unless that is only observed), of an
// enclosing total, or until the caller's deadline or TOOL_DEADLINE; when an enclosing execution begins to close; or
// when [Execution.BeginClosing] is called. Nothing is cancelled at that point. A function that finds the channel
// closed takes no new work, writes what it has, and returns:
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
// The end of the execution does not close the channel, so a select also needs ctx.Done. Closing returns the same
// channel at each call, and nil if ctx belongs to no execution.
func Closing(ctx context.Context) <-chan struct{} {
	e := executionOf(pulse.Unmuted(ctx))
	if e == nil {
		return nil
	}
	return e.closes().begun
}

// BeginClosing makes the execution and the executions nested in it begin to close, as if the reserve had been
// reached; see [Closing]. A server that is about to end calls BeginClosing first, and [Execution.Abort] when it can
// wait no longer. BeginClosing reports whether this call has made the execution begin to close. It returns false if
// the execution was closing already, was stopped, or has ended.
func (e *Execution) BeginClosing() bool {
	if e == nil {
		return false
	}
	e.closes()
	return e.closeNow()
}

// closes returns the closing of e and makes e follow the enclosing execution. If the reserve has been reached, e is
// closing on return, even if its timer has not fired.
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

// closingState returns the closing of e, and creates it if there is none yet.
func (e *Execution) closingState() *closing {
	if c := e.closing.Load(); c != nil {
		return c
	}
	e.closing.CompareAndSwap(nil, &closing{begun: make(chan struct{})})
	return e.closing.Load()
}

// enter registers e, whose closing is c, with outer, so that e begins to close when outer does. Only the first call
// has an effect.
func (e *Execution) enter(c *closing, outer *Execution) {
	c.enter.Do(func() {
		c.outer = outer
		over := false
		if outer != nil {
			o := outer.closes()
			o.mu.Lock()
			if over = o.over; !over {
				if o.inside == nil {
					o.inside = make(map[*Execution]struct{})
				}
				o.inside[e] = struct{}{}
			}
			o.mu.Unlock()
		}
		if over {
			e.closeNow()
		}
		c.entered.Store(true)
		if e.cell.Ended() {
			c.leave(e) // end may have run before, and not have called leave
		}
	})
}

// leave removes e from the enclosing execution's closing. If the execution ends before enter has returned, enter
// calls leave.
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

// closeNow makes the execution begin to close and reports that, also for the nested executions. It returns false if
// the execution was closing already, was stopped, or has ended. The caller holds no lock.
func (e *Execution) closeNow() bool {
	all := e.beginClosing(nil)
	for _, x := range all {
		if x.hasHook(hookClosing) {
			x.reportClosing()
		}
	}
	return len(all) > 0
}

// beginClosing closes the open channels of the execution and of the executions nested in it, and appends these
// executions to all. It calls no hook: all channels are closed before the first hook is called.
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
