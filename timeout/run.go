package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// RunWithExecutionTimeout is [Run] by the name that it has in the specification.
func RunWithExecutionTimeout(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Run calls fn under the limits of a [Config] given as an option, or of the process
// default, and returns when fn has returned or, at the latest, a grace after fn's
// context was cancelled.
//
// fn runs on a goroutine of its own, so that Run can return on time whatever fn
// does. Its context carries the heartbeat (package heartbeat), shows the total as its
// Deadline, and is cancelled
//
//   - when no heartbeat has come for the idle limit: Run returns an [*Error] of
//     [KindIdle], which is also the context's Cause;
//   - when the total has elapsed, or the deadline of ctx has come: [KindTotal];
//   - when ctx is cancelled: [KindAborted], and the Cause is the caller's;
//   - when fn has returned.
//
// After a limit, idle or total, the context's Err is context.DeadlineExceeded, and so is,
// at once, that of every context made from it, as under context.WithTimeout: database
// drivers, gRPC and net/http report a timeout, as they should. After the end of ctx it is
// what ctx has, and after fn's return context.Canceled, which is the Cause then, too.
// context.Cause tells the limits apart. Err of fn's context shows the end of ctx as soon as it has come; Done, and the
// contexts made from fn's, follow as soon as Run's goroutine has noticed.
//
// Exactly one of these is the outcome. If fn returns first, Run returns fn's error as
// it is. Otherwise Run returns the *Error, whatever fn returns; fn's error is in its
// tree. If both limits fall due at the same instant, it is the total. A return, a
// heartbeat or a hold at or after that instant is too late, even if the timer is.
//
// A function that has not returned when the grace is over is abandoned: Run returns
// without it, and says so in the Error, to the logger, to the hooks and in
// [AbandonedCount]. Its goroutine lives on until it returns. What it returns is dropped; a
// panic in it is reported and ends nothing.
//
// Where a call takes no context, cancelling does not end it. What does, often, is to
// close what it waits for:
//
//	stop := context.AfterFunc(ctx, func() { conn.Close() })
//	defer stop()
//
// If ctx is over already, fn is not called. A panic of fn becomes a panic of Run, also
// after the limit. Where fn panics with an error that is no runtime.Error, Run panics with
// the same, so that whoever recovers it may compare it, as net/http does with
// http.ErrAbortHandler. Anything else comes in an error that prints its value and its
// stack, and in which errors.As finds the [*PanicError]. A crash prints the stack in both
// cases; see also [WithRecover]. If fn calls runtime.Goexit, Run returns an error that is [ErrGoexit].
//
// Time is the monotonic clock's: where that stands still while a machine sleeps, as it
// does on most systems, an execution does not age meanwhile. Where it goes on although
// nobody can run, because the process is stopped (by SIGSTOP, Ctrl-Z or a debugger), its
// machine paused or its container starved, the idle limit starts afresh when the process
// runs again: the stall is logged and counted, and no gap of the tool's. The evidence of a
// stall is that the execution's own timer is overdue by more than a slack of a quarter of
// the idle limit, at least 10 ms and at most 1 s, and that meanwhile no timer of any
// execution in the process fired for longer than that slack. A timer that is overdue only
// because many are due at once finds no stall. The total goes on.
//
// An idle limit that the work of processes renews, too, as with procgroup.Activity, may be
// judged later than it falls due, as that says, and what comes until then counts.
//
// Run panics if ctx or fn is nil.
func Run(ctx context.Context, fn func(context.Context) error, opts ...Option) error {
	_, err := run(ctx, fn, opts)
	return err
}

// Do is [Run] for a function that returns a value. When the execution was stopped, the
// value is what fn returned all the same, as a partial result; it is zero if fn was
// abandoned or panicked.
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
	if ctx.Err() != nil {
		return false, e.neverStarted()
	}
	e.prepare()
	if !e.borrowTotal() {
		return false, e.neverStarted()
	}
	if left := e.cap(); left > 0 && left < needed {
		return false, e.tooLittleLeft(needed)
	}

	// The context and the timer are made here, and what else there is to do is done by
	// others, because this is where the caller's stack is lowest: a few hundred bytes
	// more, and each goroutine that calls Run has to grow its stack from 2 KiB to 4.
	var late time.Duration
	if e.watch = watching.Load(); e.watched() {
		late = e.enrich()
	}
	// A CancelFunc that is kept is an allocation. What cancels this context is propagate.
	var cancel context.CancelFunc
	e.inner, cancel = context.WithCancel((*root)(e))
	_ = cancel
	e.cell.Lock()
	if first := e.next(); first != pulse.Forever {
		e.setArmed(first)
		e.timer = pulse.AfterFunc(e.cell.Clock(), first-late, e.onTimer)
	}
	e.cell.Unlock()
	if e.watched() {
		e.begin()
	}
	if e.limits.Reserve > 0 || e.watched() {
		e.startClosing()
	}
	go e.main()
	// Where both are ready it does not matter which is taken: who decides the outcome is
	// settled elsewhere.
	select {
	case <-e.inner.Done():
	case <-e.caller.Done():
		e.callerDone()
		<-e.inner.Done()
	}
	return e.conclude()
}
