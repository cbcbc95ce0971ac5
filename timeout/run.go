package timeout

import (
	"context"
	"runtime/pprof"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// RunWithExecutionTimeout is the same as [Run]. The specification uses this name.
func RunWithExecutionTimeout(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	return Run(ctx, fn, opts...)
}

// Run calls fn under the limits of a [Config] given as an option, or of the process default, and returns when fn has
// returned or, at the latest, a grace after fn's context was cancelled. Hooks and log records may delay the return
// by another grace; see [Hooks].
//
// Run calls fn on a new goroutine. The context of fn carries the heartbeat (package heartbeat), has the end of the
// total as its Deadline, and is cancelled
//
//   - when no heartbeat has come for the idle limit ([ErrIdle]);
//   - when the total has elapsed, or the deadline of ctx or TOOL_DEADLINE has come ([ErrTotal]);
//   - when ctx is cancelled or [Execution.Abort] is called ([ErrAborted]);
//   - when fn has returned.
//
// Exactly one of these events is the outcome. If fn returns first, Run returns fn's error unchanged. Otherwise Run
// returns an [*Error] of the kind shown, with fn's error in its tree. If both limits fall due at the same instant,
// the total wins. A return, a heartbeat or a hold at or after that instant is too late.
//
// A function that has not returned when the grace is over is abandoned: Run returns without it and reports the
// abandonment in the Error, to the logger, to the hooks and in [AbandonedCount].
//
// If ctx has already ended, one of these deadlines has passed, or less time is left than [Need] asks for, Run returns
// an [*Error] without calling fn. A panic of fn becomes a panic of Run, even after a limit; see [WithRecover]. If fn
// calls runtime.Goexit, Run returns an error that wraps [ErrGoexit].
//
// Run panics if ctx or fn is nil. The package documentation describes the context, panics and time.
func Run(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Do is [Run] for a function that returns a value. If fn returned after the execution was stopped, Do returns its
// value with the [*Error], as a partial result. The value is zero if fn was not called, was abandoned, panicked or
// called runtime.Goexit.
func Do[T any](ctx context.Context, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	if fn == nil {
		panic(misuse("function"))
	}
	var value, zero T
	returned, err := run(ctx, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	}, opts)
	if !returned {
		return zero, err // an abandoned fn may still write to value
	}
	return value, err
}

func run(ctx context.Context, fn func(context.Context) error, opts []Option) (returned bool, err error) {
	if ctx == nil {
		panic(misuse("context"))
	}
	if fn == nil {
		panic(misuse("function"))
	}
	e := &Execution{fn: fn, caller: ctx}
	var needed time.Duration
	for _, o := range opts {
		if n, ok := o.(need); ok {
			needed = time.Duration(n)
		}
		if r, ok := o.(refusal); ok && r.err != nil {
			return false, r.err
		}
		if o != nil {
			o.apply(&e.settings)
		}
	}
	e.startReports()
	if ctx.Err() != nil {
		return false, e.neverStarted()
	}
	e.callersEnd = ctx.Done()
	e.prepare()
	if !e.borrowTotal() {
		e.awaitCaller()
		return false, e.neverStarted()
	}
	if left := e.cap(); left > 0 && left < needed {
		return false, e.tooLittleLeft(needed)
	}

	// The context and the timer are created in this function, and everything else happens in other functions, to keep
	// the stack small: with a few hundred bytes more, each goroutine that calls Run would have to grow its stack from
	// 2 KiB to 4. The CancelFunc is not used, because it cannot choose the Err: propagate cancels this context.
	var cancel context.CancelFunc
	e.inner, cancel = context.WithCancel((*root)(e))
	_ = cancel
	e.cell.Lock()
	if first := e.next(); first != pulse.Forever {
		e.setArmed(first)
		e.timer = pulse.AfterFunc(e.cell.Clock(), first, e.onTimer)
	}
	e.cell.Unlock()
	if e.limits.Reserve > 0 || e.reports != nil {
		e.startClosing()
	}
	go e.main()
	// If both channels are ready, either case may run. The outcome is decided elsewhere, under the lock.
	select {
	case <-e.inner.Done():
	case <-e.callersEnd:
		go e.callerDone() // not here, because the methods of ctx may block
		<-e.inner.Done()
	}
	return e.conclude()
}

// startClosing sets the timer for the reserve. If the reserve is already reached, the execution is closing at once.
// The hook Closing is called after Started even then, because the function's goroutine delivers the first reports.
// startClosing must not be inlined, because run must keep its stack small.
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
	if e.hasHook(hookClosing) {
		e.closes()
	}
}

// main calls the function; it runs on a goroutine of its own. It must not be inlined, and its receiver must be alive
// across the call, because Execution.stack finds the goroutine in a dump by this frame and the address of its receiver.
//
//go:noinline
func (e *Execution) main() {
	// Deferred, so that it also runs after Goexit; and recover has an effect only if the deferred function calls it
	// itself.
	defer func() {
		if !e.normal {
			if v := recover(); v != nil {
				e.err = e.newPanic(v)
			} else if e.err == nil {
				e.err = &goexitError{Tool: e.tool}
			}
		}
		e.recordReturn()
	}()
	if (e.reports != nil || e.command != nil) && !e.open() {
		return
	}
	if e.tool != "" {
		pprof.SetGoroutineLabels((*scope)(e))
	}
	e.err = e.fn((*scope)(e))
	e.normal = true
}

// recordReturn records that the function has returned, and makes the return the outcome unless the outcome has been
// decided. A limit that has fallen due, or the end of the caller's context, takes precedence even if the goroutine
// that handles it has not run yet, so that the outcome does not depend on the order in which goroutines run.
func (e *Execution) recordReturn() {
	e.cell.Lock()
	e.returned = true
	first := !e.decided
	if first {
		now := e.cell.Flush() // ends a burst, during which the time of the last beat is not recorded
		e.returnedAt = now
		switch kind := e.due(now); {
		case e.callersToDecide(kind, now):
			first = false
		case kind != 0:
			e.decide(e.newError(kind, now, end{}))
		default:
			e.decide(nil)
		}
	} else {
		e.returnedAt = e.cell.Now()
	}
	abandoned := e.abandoned
	if abandoned {
		e.settle()
	}
	e.wake()
	e.cell.Unlock()

	if first {
		mine := e.reports != nil && e.reportEnd()
		e.cancel(nil)
		e.deliver(mine, true)
	}
	if abandoned {
		e.returnedLate()
	}
}
