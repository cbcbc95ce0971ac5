package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// RunWithExecutionTimeout is [Run] under the name that the specification uses. They do not differ.
func RunWithExecutionTimeout(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Run calls fn under the limits of a [Config] given as an option, or of the process default, and
// returns when fn has returned or, at the latest, a grace after fn's context was cancelled.
//
// Run calls fn on a goroutine of its own, so that it can return on time whatever fn does. The context
// of fn carries the heartbeat (package heartbeat), has the total as its Deadline, and is cancelled
//
//   - when no heartbeat has come for the idle limit: Run returns an [*Error] of
//     [KindIdle], which is also the context's Cause;
//   - when the total has elapsed, or the deadline of ctx has come: [KindTotal], with the Cause of ctx
//     (see context.WithTimeoutCause) in its tree;
//   - when ctx is cancelled: [KindAborted], and the Cause is that of ctx;
//   - when fn has returned.
//
// After an idle or a total timeout the Err of that context is context.DeadlineExceeded, and at once
// so is the Err of every context made from it, as under context.WithTimeout, so that database
// drivers, gRPC and net/http report a timeout. After the end of ctx it is the Err of ctx. After fn's
// return both Err and Cause are context.Canceled. context.Cause tells the limits apart. Err of fn's
// context shows the end of ctx immediately; Done, and the contexts made from fn's, follow as soon as
// Run's goroutine has noticed.
//
// Exactly one of these is the outcome. If fn returns first, Run returns fn's error as it is.
// Otherwise Run returns the *Error, whatever fn returns, with fn's error in its tree. If both limits
// fall due at the same instant, the total wins. A return, a heartbeat or a hold at or after that
// instant is too late, even if the timer is late as well.
//
// A function that has not returned when the grace is over is abandoned: Run returns without it and
// reports that in the Error, to the logger, to the hooks and in [AbandonedCount]. The goroutine of
// the function lives on until the function returns. Its result is dropped; a panic in it is reported
// and ends nothing.
//
// A call that takes no context is not ended by cancelling. Closing what it waits for often ends it:
//
//	stop := context.AfterFunc(ctx, func() { conn.Close() })
//	defer stop()
//
// If ctx has already ended, Run does not call fn. A panic of fn becomes a panic of Run, even after a
// limit. If fn panics with an error that is not a runtime.Error, Run panics with the same error, so
// that a caller can compare it after recovering, as net/http does with http.ErrAbortHandler. For any
// other value Run panics with an error that prints the value and its stack, and in which errors.As
// finds the [*PanicError]. A crash prints the stack in both cases. See also [WithRecover]. If fn calls
// runtime.Goexit, Run returns an error that wraps [ErrGoexit].
//
// Time is that of the monotonic clock. On most systems that clock stands still while the machine
// sleeps, and then an execution does not age. If the clock goes on while the process cannot run,
// because the process is stopped (by SIGSTOP, Ctrl-Z or a debugger), its machine is paused or its
// container is starved, the idle limit starts afresh when the process runs again. The stall is
// logged and counted, and it is no gap of the tool. Two facts together are the evidence of a stall:
// the execution's own timer is overdue by more than a slack of a quarter of the idle limit, at least
// 10 ms and at most 1 s; and meanwhile no timer of any execution in the process fired for longer than
// that slack. A timer that is overdue only because many are due at once is no evidence. The total
// does not move.
//
// Run calls the methods of ctx on its caller's goroutine before it calls fn, and has to wait for them.
// Later, no stop and no return waits for them: a context that does not say how it has ended leaves the
// execution to its limits. A context that shows a deadline and does not end by it is stopped 100 ms later.
//
// If the work of processes also renews the idle limit, as with procgroup.Activity, the limit may be
// judged later than it falls due, as described there, and heartbeats until then count.
//
// Run panics if ctx or fn is nil.
func Run(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Do is [Run] for a function that returns a value. If the execution was stopped, Do still returns the
// value of fn, as a partial result. The value is zero if fn was abandoned or panicked.
func Do[T any](ctx context.Context, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	if fn == nil {
		panic("timeout: nil function")
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
		panic("timeout: nil context")
	}
	if fn == nil {
		panic("timeout: nil function")
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

	// The context and the timer are made here, and what else there is to do is done by
	// others, because this is where the caller's stack is lowest: a few hundred bytes
	// more, and each goroutine that calls Run has to grow its stack from 2 KiB to 4.
	// propagate cancels this context: it chooses the Err, which a CancelFunc cannot.
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
	// If both are ready, it does not matter which is taken: the outcome is not decided here.
	select {
	case <-e.inner.Done():
	case <-e.callersEnd:
		e.callerOver(ctx)
		<-e.inner.Done()
	}
	return e.conclude()
}
