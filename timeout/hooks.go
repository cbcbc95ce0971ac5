package timeout

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Hooks are called in the course of an execution, for metrics and traces. Any of them may be nil.
// [WithHooks] sets the hooks of one execution, and [Watch] those of all.
//
// All hooks but Context get the function's context, in which [FromContext] returns the execution.
// That context is already cancelled in Exceeded (unless limits are only observed), Finished,
// Abandoned and Returned. Hooks are called synchronously and should return quickly: Context,
// Started, Exceeded, Abandoned and Finished delay the caller, and Returned delays the abandoned
// goroutine. A hook that does not return delays Run beyond its grace, and a command of package
// procgroup is not killed before Exceeded has returned. A heartbeat in a hook counts as one of the
// function.
//
// A panic in a hook is recovered and logged. A hook that calls [runtime.Goexit], as a test's FailNow
// does, ends the goroutine that it is called on, which for most hooks is Run's. Other hooks for the
// same event are still called, and so is Finished. If Started calls it, the function is not called.
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
	// check then starts afresh. It runs on a goroutine of its own, so it may run concurrently with
	// Finished, or after Run has returned.
	NearIdle func(context.Context, Snapshot)
	// Stalled is called when it is found that the process could not run; see [Run]. It may run on a
	// goroutine of its own, as NearIdle does.
	Stalled func(context.Context, Snapshot)
	// Closing is called when the execution is closing, once, and never before Started; see the
	// function [Closing]. It may run on a goroutine of its own, as NearIdle does.
	Closing func(context.Context, Snapshot)
	// Exceeded is called once when a limit has stopped the execution, before the grace. Err is the
	// [*Error] as far as it is known by then. It is not changed later and may be kept. Under
	// [WithObserveOnly], Exceeded is called at most once for each limit that would have stopped
	// the execution, on a goroutine of its own but before Finished, and not for the caller's
	// deadline.
	Exceeded func(context.Context, Snapshot)
	// Abandoned is called before Finished when the function has not returned within
	// the grace.
	Abandoned func(context.Context, Snapshot)
	// Finished is called when the outcome is known, right before Run returns or panics, exactly
	// once for each Started. After a success, the Snapshot has the figures of the run, which no
	// error reports.
	Finished func(context.Context, Snapshot)
	// Returned is called when an abandoned function returns after all. Err is what it returned,
	// or a *PanicError if it panicked.
	Returned func(context.Context, Snapshot)
}

// WithHooks calls h. If the option is given more than once, all hooks are called, in the order
// given. The hooks of [Watch] are called first for Context and Started and last for all other
// events, so that the first to begin is the last to end.
func WithHooks(h Hooks) Option {
	return optionFunc(func(s *settings) { s.hooks = append(s.hooks, h) })
}

// The hooks by name, so that there is one place that calls them.
type hook func(*Hooks) func(context.Context, Snapshot)

var (
	hookStarted   hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Started }
	hookNearIdle  hook = func(h *Hooks) func(context.Context, Snapshot) { return h.NearIdle }
	hookStalled   hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Stalled }
	hookClosing   hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Closing }
	hookExceeded  hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Exceeded }
	hookAbandoned hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Abandoned }
	hookFinished  hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Finished }
	hookReturned  hook = func(h *Hooks) func(context.Context, Snapshot) { return h.Returned }
)

// wants reports whether anybody has set the hook.
func (e *Execution) wants(h hook) bool { return e.watched() && e.anybodyWants(h) }

// watched reports whether there are any hooks.
func (e *Execution) watched() bool { return e.watch != nil || len(e.hooks) > 0 }

func (e *Execution) anybodyWants(h hook) bool {
	return isSet(h, e.hooks) || e.watch != nil && isSet(h, e.watch.hooks)
}

func isSet(h hook, in []Hooks) bool {
	for i := range in { // by its address: a copy would be an allocation
		if h(&in[i]) != nil {
			return true
		}
	}
	return false
}

// enrich calls the Context hooks, and returns the present instant if it has.
func (e *Execution) enrich() (now time.Duration) {
	if e.watch != nil {
		now = e.enrichByAll(e.watch.hooks, now)
	}
	return e.enrichByAll(e.hooks, now)
}

func (e *Execution) enrichByAll(all []Hooks, now time.Duration) time.Duration {
	for i := range all {
		if f := all[i].Context; f != nil {
			e.enrichBy(f)
			now = e.cell.Now()
		}
	}
	return now
}

func (e *Execution) enrichBy(f func(context.Context, Snapshot) context.Context) {
	defer e.survive()
	ctx := f(e.caller, e.snapshot(nil))
	switch c, again := e.caller.(*enriched); {
	case ctx == nil:
	case again:
		e.caller = &enriched{c.Context, ctx}
	default:
		e.caller = &enriched{e.caller, ctx}
	}
}

// begin reports the start.
func (e *Execution) begin() {
	begun := false
	defer func() {
		if !begun {
			e.endUnbegun()
		}
	}()
	if e.wants(hookStarted) {
		s := e.snapshot(nil)
		e.callStarted(&s)
	}
	if e.watch != nil {
		e.identity().insert()
	}
	begun = true
}

// callStarted calls the watchers first: the first to begin is the last to end.
func (e *Execution) callStarted(s *Snapshot) {
	defer e.callAll(e.hooks, hookStarted, s)
	if e.watch != nil {
		e.callAll(e.watch.hooks, hookStarted, s)
	}
}

// endUnbegun is for an execution whose hook Started has called runtime.Goexit, which leaves
// nobody to call the function and nobody to return to. Finished is due all the same.
func (e *Execution) endUnbegun() {
	e.err = &goexitError{Tool: e.tool}
	e.recordReturn()
	_, _ = e.conclude()
}

// call calls any hook but those of the start.
func (e *Execution) call(h hook, s *Snapshot) {
	if e.watch != nil {
		defer e.callAll(e.watch.hooks, h, s)
	}
	e.callAll(e.hooks, h, s)
}

// callAll calls them all, even where one of them calls runtime.Goexit, as the FailNow of a test
// does. The caller has to defer its next steps, too.
func (e *Execution) callAll(all []Hooks, h hook, s *Snapshot) {
	i := 0
	defer func() {
		if i < len(all) {
			e.logAttrs(slog.LevelError, "hook called runtime.Goexit")
			e.callAll(all[i+1:], h, s)
		}
	}()
	for ; i < len(all); i++ {
		if f := h(&all[i]); f != nil {
			e.callOne(f, s)
		}
	}
}

func (e *Execution) callOne(f func(context.Context, Snapshot), s *Snapshot) {
	defer e.survive()
	f((*scope)(e), *s)
}

// survive is deferred where a hook is called.
func (e *Execution) survive() {
	if v := recover(); v != nil {
		e.logAttrs(slog.LevelError, "hook panicked",
			slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
	}
}
