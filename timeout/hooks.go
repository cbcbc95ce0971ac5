package timeout

import (
	"context"
)

// Hooks are called in the course of an execution, for metrics and traces. Any of them may be nil.
// [WithHooks] sets the hooks of one execution, and [Watch] sets hooks for all executions.
//
// All hooks but Context get the function's context, in which [FromContext] returns the execution.
// That context is already cancelled in Exceeded (unless limits are only observed), Finished,
// Abandoned and Returned. A heartbeat in a hook counts as one of the function.
//
// The hooks of an execution are called one after the other, in the order of the events, as its log
// records are written: Context and Started on the function's goroutine before the function, Finished on
// it after a function that has returned in time, and the others on other goroutines. No limit, no stop and no kill
// of a command waits for a hook. At its end, Run does: until all hooks and log records are through, but
// not once they have kept it for a grace (at least 100 ms). Then it returns, the [*Error] of a stopped execution is
// Unreported, and the execution is in [AbandonedCount] and [Running] until the hook returns, and the rest
// is called. So a hook must not wait for the end of its own execution, and one that is stuck is the last.
//
// The function waits for Context and Started, which may use up its time: where they do not return, a limit
// ends the execution without it.
//
// A panic in a hook is recovered and logged. A hook that calls [runtime.Goexit], as a test's FailNow
// does, ends the goroutine that it is called on, and no caller's; the other hooks are still called. If
// Context or Started calls it, the function is not called. Nor is it if the execution is abandoned while
// they run.
type Hooks struct {
	// Context returns the context from which the function's context is made. A tracer can begin a
	// span here. It gets the caller's context, or the result of the Context hook before it, and is
	// called before Started. The time that it takes counts as the execution's. Only the values of
	// its result matter: it has no influence on when and how the function's context ends. A nil
	// result adds nothing.
	Context func(context.Context, Snapshot) context.Context
	// Started is called before the function. If the caller's context has already ended, none of
	// Context, Started and Finished is called.
	Started func(context.Context, Snapshot)
	// NearIdle is called when 80 % of the idle limit has passed without a heartbeat,
	// once for each such gap, and again if the process was stopped during the gap, because the
	// check then starts afresh.
	NearIdle func(context.Context, Snapshot)
	// Stalled is called when the execution finds that the process could not run for a time.
	Stalled func(context.Context, Snapshot)
	// Closing is called when the execution is closing, once, and never before Started; see the
	// function [Closing]. It may be called a moment after [Execution.BeginClosing] has returned.
	Closing func(context.Context, Snapshot)
	// Exceeded is called once when a limit has stopped the execution, before the grace. Err is the
	// [*Error] as far as it is known by then. It is not changed later and may be kept. Under
	// [WithObserveOnly], Exceeded is called at most once for each limit that would have stopped
	// the execution, and not for the caller's deadline.
	Exceeded func(context.Context, Snapshot)
	// Abandoned is called before Finished when the function has not returned within
	// the grace.
	Abandoned func(context.Context, Snapshot)
	// Finished is called when the outcome is known, right before Run returns or panics, exactly
	// once for each Started. Err is what Run returns. After a success, the Snapshot has the figures of the run, which no
	// error reports.
	Finished func(context.Context, Snapshot)
	// Returned is called when an abandoned function returns after all. Err is what it returned,
	// or a *PanicError if it panicked.
	Returned func(context.Context, Snapshot)
}

// A hook names one of the Hooks, but not Context, which is called in another way.
type hook uint8

const (
	hookStarted hook = iota + 1
	hookNearIdle
	hookStalled
	hookClosing
	hookExceeded
	hookAbandoned
	hookFinished
	hookReturned
)

func (h hook) function(all *Hooks) func(context.Context, Snapshot) {
	switch h {
	case hookStarted:
		return all.Started
	case hookNearIdle:
		return all.NearIdle
	case hookStalled:
		return all.Stalled
	case hookClosing:
		return all.Closing
	case hookExceeded:
		return all.Exceeded
	case hookAbandoned:
		return all.Abandoned
	case hookFinished:
		return all.Finished
	case hookReturned:
		return all.Returned
	}
	return nil
}

// isAnySet reports whether one of the hooks is set.
func (h *Hooks) isAnySet() bool {
	for which := hookStarted; which <= hookReturned; which++ {
		if which.function(h) != nil {
			return true
		}
	}
	return h.Context != nil
}

func isSet(h hook, in []Hooks) bool {
	for i := range in { // by its address: a copy would be an allocation
		if h.function(&in[i]) != nil {
			return true
		}
	}
	return false
}
