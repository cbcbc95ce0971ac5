package timeout

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is about the time that is left: how much it is, whether a function may begin with it,
// and when it is so little that the execution is closing (SPEC 3.20 to 3.22).

// Remaining returns how much time is left before the earliest of the totals of the executions that
// ctx belongs to and the deadline of ctx. Outside an execution TOOL_DEADLINE counts, too. It reports false if
// there is none of these. Once that instant has passed, it returns 0 and true.
//
// Under [WithObserveOnly] the total of that execution does not count, because it stops nothing.
func Remaining(ctx context.Context) (left time.Duration, ok bool) {
	x := executionOf(pulse.Unmuted(ctx))
	left, ok, _ = remaining(ctx, x)
	if x == nil {
		left, ok = remainingInherited(left, ok)
	}
	return max(left, 0), ok
}

// remaining returns the time until ctx's deadline. x is the innermost execution of ctx.
//
// On a clock of its own an execution shows a deadline that moves with the system's time, see
// deadline. If ctx's deadline is that one, what is left is exact only on that clock. Reading it
// between two readings of the execution's tells whether it is: the deadline of a
// context.WithTimeout in between would have to lie within the same moment, and then it makes no
// difference. exact reports whether ctx's deadline is that of the execution.
func remaining(ctx context.Context, x *Execution) (left time.Duration, ok, exact bool) {
	if x == nil || x.cell.Clock() == nil || x.cap() <= 0 {
		deadline, ok := ctx.Deadline()
		return time.Until(deadline), ok, false
	}
	most, from := x.left(), time.Now()
	deadline, ok := ctx.Deadline()
	least, to := x.left(), time.Now()
	if deadline.Before(from.Add(least)) || deadline.After(to.Add(most)) {
		return time.Until(deadline), ok, false
	}
	return least, ok, true
}

// Need makes [Run] and [Do] return an error without calling the function if less than d is left of the
// execution's total, of an enclosing execution's, or of the caller's deadline. The error is an
// [*Error] of [KindTotal] that has d as Needed and what is left as Limit. If exactly d is left, the
// function is called. Without a total, and for a d of 0 or less, Need does nothing.
func Need(d time.Duration) Setting { return need(d) }

// A need is looked for by run, as a refusal is.
type need time.Duration

func (need) apply(*settings) {}
func (need) setting()        {}

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

// A closing is the state of an execution that is closing, or whose closing has been asked for. Most executions have
// none.
type closing struct {
	begun   chan struct{}
	enter   sync.Once   // registers the execution in the inside of the enclosing one
	entered atomic.Bool // enter has been done
	outer   *Execution  // the enclosing execution; set by enter

	// The lock is taken under that of a cell, and nothing is taken under it.
	mu     sync.Mutex
	over   bool          // begun is closed
	at     time.Duration // since when
	inside map[*Execution]struct{}
}

// closingState returns the closing of e, which it makes if there is none.
func (e *Execution) closingState() *closing {
	if c := e.closing.Load(); c != nil {
		return c
	}
	e.closing.CompareAndSwap(nil, &closing{begun: make(chan struct{})})
	return e.closing.Load()
}

// closes returns the state, which follows that of the enclosing executions from here on. A change that
// is due has happened on return, even if its timer is late.
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
			c.leave(e) // end, if it came before, has found nothing to leave
		}
	})
}

// encloser returns the enclosing execution, even if its heartbeat is muted.
func (e *Execution) encloser() *Execution { return executionOf(pulse.Unmuted(e.caller)) }

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

// closesAt returns the instant at which the reserve is reached, or Forever if there is no reserve.
func (e *Execution) closesAt() time.Duration {
	if total := e.cap(); e.limits.Reserve > 0 && total > 0 {
		return max(total-e.limits.Reserve, 0)
	}
	return pulse.Forever
}

// UntilClosing returns how much time is left before the reserve is reached. It reports false if there is no
// reserve, or if it has been reached. It is for package progress.
func (w *engine) UntilClosing() (left time.Duration, ok bool) {
	e := (*Execution)(w)
	at := e.closesAt()
	left = at - e.cell.Now()
	return left, at != pulse.Forever && left > 0
}

// closingDue returns the instant at which the timer has to fire for the reserve, or Forever if it need not.
// The cell is locked.
func (e *Execution) closingDue() time.Duration {
	if !e.awaitsReserve {
		return pulse.Forever
	}
	return e.closesAt()
}

// startClosing sets the timer for the reserve, after Started, so that no hook hears of the closing
// before that. An execution may be closing from the start. startClosing must not be inlined: Run is
// where the stack should be small.
//
//go:noinline
func (e *Execution) startClosing() {
	if at := e.closesAt(); at != pulse.Forever {
		e.cell.Lock()
		now := e.cell.Now()
		due := now >= at
		if !due && !e.decided {
			e.awaitsReserve = true
			e.armFor(at, now)
		}
		e.cell.Unlock()
		if due {
			e.closeNow()
		}
	}
	if e.wants(hookClosing) {
		e.closes()
	}
}

// closeNow makes the execution closing and reports it. It reports false if that was not for this
// call to do. The caller holds no lock.
func (e *Execution) closeNow() bool {
	all := e.beginClosing(nil)
	for _, x := range all {
		if x.wants(hookClosing) {
			x.reportClosing()
		}
	}
	return len(all) > 0
}

// beginClosing closes the channels of the execution and of those within it, and appends to all those
// that were open. All channels are closed before the first hook is called.
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

// closingBy reports whether the execution is closing at the instant now.
func (e *Execution) closingBy(now time.Duration) bool {
	if now >= e.closesAt() {
		return true
	}
	if c := e.closing.Load(); c != nil {
		c.mu.Lock()
		over := c.over && c.at <= now
		c.mu.Unlock()
		if over {
			return true
		}
	}
	outer := e.enclosing()
	switch {
	case outer == nil:
		return false
	case outer.cell.Clock() != e.cell.Clock(): // instants cannot be compared
		return outer.closingBy(outer.cell.Now())
	}
	return outer.closingBy(now + e.cell.Start().Sub(outer.cell.Start()))
}

// reportClosing reports that the execution is closing. Neither the hooks of another execution nor the caller of
// BeginClosing wait for the hooks. It must not be inlined: see onTimer.
//
//go:noinline
func (e *Execution) reportClosing() {
	s := e.snapshot(nil)
	e.deliver(e.postHook(hookClosing, &s), false)
}
