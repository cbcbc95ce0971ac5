package timeout

import (
	"context"
	"slices"
)

// Hooks are functions that are called during an execution, for metrics and traces. Any of them may be nil.
// [WithHooks] sets the hooks of one execution, and [Watch] sets hooks for all executions.
//
// All hooks but Context get the function's context, in which [FromContext] returns the execution. That context is
// already cancelled in Exceeded (unless limits are only observed), Finished, Abandoned and Returned. A heartbeat in a
// hook counts as a heartbeat of the function.
//
// The hooks of an execution and its log records are delivered one after the other, in the order of the events:
// Context and Started on the function's goroutine before the function, Finished on the same goroutine if the
// function has returned in time and no delivery is in progress, and the others on other goroutines. No limit, no
// stop and no kill of a command waits for a hook. Run waits for its hooks at its end, until all hooks and log
// records are delivered, but for no more than a grace (at least 100 ms). Then Run returns, Unreported is set in the
// [*Error] of a stopped execution, and the execution stays in [AbandonedCount] and [Running] until the hook returns
// and the other hooks have been called. A hook must therefore not wait for the end of its own execution. After a
// hook that never returns, no other is called.
//
// The function waits for Context and Started, which may use up its time: if they do not return, a limit ends the
// execution and the function is not called.
//
// A panic in a hook is recovered and logged. A hook that calls [runtime.Goexit], as a test's FailNow does, ends only
// the goroutine of the delivery; the other hooks are still called. If Context or Started calls it, the function is
// not called, and Run returns an error that wraps [ErrGoexit].
type Hooks struct {
	// Context returns a context whose values the function's context gets. A tracer can begin a span here. Context
	// gets the caller's context, with the values of the result of the Context hook before it, and is called before
	// Started. The time that it takes counts as the execution's. Only the values of its result matter: it has no
	// influence on when and how the function's context ends. A nil result adds nothing.
	Context func(context.Context, Snapshot) context.Context
	// Started is called before the function. If the execution does not start, for example because the caller's
	// context has already ended, no hook is called.
	Started func(context.Context, Snapshot)
	// NearIdle is called when 80 % of the idle limit has passed without a heartbeat, once for each such gap, and
	// again if the process was stalled during the gap, because the idle check then starts afresh. NearIdle and
	// Stalled may be left out while 64 reports wait for delivery.
	NearIdle func(context.Context, Snapshot)
	// Stalled is called when the idle check has found that the process could not run for a time. It may be left out
	// while 64 reports wait for delivery.
	Stalled func(context.Context, Snapshot)
	// Closing is called once, when the execution begins to close, and never before Started; see the function
	// [Closing]. It may be called a moment after [Execution.BeginClosing] has returned.
	Closing func(context.Context, Snapshot)
	// Exceeded is called once when a limit or the caller's deadline has stopped the execution, without waiting for
	// the function to return. The Err of the Snapshot is an [*Error] that describes the stop up to then, and is not
	// changed later. Under [WithObserveOnly], Exceeded is called at most once for each limit that would have stopped
	// the execution, and not for the caller's deadline.
	Exceeded func(context.Context, Snapshot)
	// Abandoned is called before Finished when the function has not returned within the grace.
	Abandoned func(context.Context, Snapshot)
	// Finished is called when the outcome is known, before Run returns or panics, exactly once for each Started. Run
	// waits for it no longer than [Hooks] describes. The Err of the Snapshot is the error that Run returns, or a
	// [*PanicError] if Run panics. After a success, the Snapshot holds the figures of the run, which no error reports.
	Finished func(context.Context, Snapshot)
	// Returned is called when an abandoned function returns after all. The Err of the Snapshot is the function's
	// error, a [*PanicError] if the function panicked, or the stop's [*Error] if Context or Started returned too
	// late for the function to be called.
	Returned func(context.Context, Snapshot)
}

// A hook identifies a field of Hooks other than Context, whose type differs.
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
	return [...]func(context.Context, Snapshot){
		hookStarted: all.Started, hookNearIdle: all.NearIdle, hookStalled: all.Stalled, hookClosing: all.Closing,
		hookExceeded: all.Exceeded, hookAbandoned: all.Abandoned, hookFinished: all.Finished, hookReturned: all.Returned,
	}[h]
}

// isAnySet reports whether at least one of the hooks is set.
func (h *Hooks) isAnySet() bool {
	for which := hookStarted; which <= hookReturned; which++ {
		if which.function(h) != nil {
			return true
		}
	}
	return h.Context != nil
}

func isSet(h hook, in []*Hooks) bool {
	return slices.ContainsFunc(in, func(all *Hooks) bool { return h.function(all) != nil })
}
