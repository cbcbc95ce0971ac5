package timeout

import (
	"context"
	"runtime/pprof"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// RunWithExecutionTimeout does what [Run] does, under the name that the specification uses.
func RunWithExecutionTimeout(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Run calls fn under the limits of a [Config] given as an option, or of the process default, and
// returns when fn has returned or, at the latest, a grace after fn's context was cancelled.
//
// Run calls fn on a goroutine of its own. The context of fn carries the heartbeat (package heartbeat),
// has the total as its Deadline, and is cancelled
//
//   - when no heartbeat has come for the idle limit ([ErrIdle]);
//   - when the total has elapsed, or the deadline of ctx has come ([ErrTotal]);
//   - when ctx is cancelled ([ErrAborted]);
//   - when fn has returned.
//
// Exactly one of these is the outcome. If fn returns first, Run returns fn's error as it is. Otherwise
// Run returns an [*Error] of that kind, with fn's error in its tree. If both limits fall due at the same
// instant, the total wins. A return, a heartbeat or a hold at or after that instant is too late.
//
// A function that has not returned when the grace is over is abandoned: Run returns without it and
// reports that in the Error, to the logger, to the hooks and in [AbandonedCount].
//
// If ctx has already ended, Run does not call fn. A panic of fn becomes a panic of Run, even after a
// limit; see [WithRecover]. If fn calls runtime.Goexit, Run returns an error that wraps [ErrGoexit].
//
// Run panics if ctx or fn is nil. The package documentation describes the context, panics and time.
func Run(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Do is [Run] for a function that returns a value. If the execution was stopped, Do still returns the
// value of fn, as a partial result. The value is zero if fn was abandoned or panicked.
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
		return zero, err // the function may be writing value right now
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

	// The context and the timer are made here, and everything else is done by other
	// functions, because this is where the caller's stack is lowest: a few hundred bytes
	// more, and each goroutine that calls Run has to grow its stack from 2 KiB to 4.
	// propagate cancels this context, because it chooses the Err and a CancelFunc cannot.
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
	// If both are ready, either may be taken: the outcome is not decided here.
	select {
	case <-e.inner.Done():
	case <-e.callersEnd:
		e.callerOver(ctx)
		<-e.inner.Done()
	}
	return e.conclude()
}

// startClosing sets the timer for the reserve. It is called after the hook Started, so that no hook learns of the closing
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
	if e.hasHook(hookClosing) {
		e.closes()
	}
}

// main is the function's goroutine. It must not be inlined, and its receiver must be
// alive across the call: that is how a sample of all stacks tells whose this is.
//
//go:noinline
func (e *Execution) main() {
	// Deferred because of Goexit, and directly because recover works nowhere else.
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

// recordReturn records that the function has returned, and makes the return the outcome unless
// there is an outcome already. A limit that has fallen due, or the end of the caller's context, counts
// even if its goroutine is late, so that the outcome does not depend on which of the two
// runs first.
func (e *Execution) recordReturn() {
	e.cell.Lock()
	e.returned = true
	first := !e.decided
	if first {
		now := e.cell.Flush() // also for the stamp of a burst that has not ended
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
