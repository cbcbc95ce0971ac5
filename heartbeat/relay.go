package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// Relay passes the beats of the execution of ctx, and of nested executions, on to sink, with the newest detail
// (nil if there was none), at most once per interval: the first beat at once, and the later ones together, when
// the interval ends. While no beat comes it does not call the sink, so silence stays visible, except during a
// [Hold], when silence means nothing: then it also calls the sink at the beginning, once per interval, and at the end.
//
// The calls are made one at a time, on a separate goroutine. A slow sink delays its own next call, but no beat and no
// deadline. A panic of the sink is dropped. The context of a call has the values of ctx but carries no heartbeat, so
// nothing that a sink does counts as a sign of life. It is not cancelled with the execution, so that
// a sink can store the detail.
//
// The relay ends when stop is called or when the execution ends, whichever comes first. A detail that has not been
// passed on by then is passed on; plain beats are dropped. That call, and one in progress, have 2 s, then their context is
// cancelled. Stop waits for them, for no longer than that, and no call begins after it has returned; the end of the
// execution waits for nothing. Defer stop in the function that does the work: then the sink has the newest detail before
// the result is known. Calling stop again waits too. A sink must not call stop. If ctx is cancelled before, as by a limit,
// the relay passes on a detail that it has not passed on yet, and makes no more calls until its end.
//
// Outside an execution the sink is never called. Relay panics if sink is nil.
//
// An interval of 0 means [DefaultInterval]; a negative interval means no pause between two calls, and no
// calls in the middle of a hold. The shortest is 1 ms.
func Relay(ctx context.Context, every time.Duration, sink func(ctx context.Context, detail any)) (stop func()) {
	if sink == nil {
		panic("heartbeat: nil sink")
	}
	c := pulse.Of(ctx)
	if c == nil {
		return func() {}
	}
	if every == 0 {
		every = DefaultInterval
	}
	if every > 0 {
		every = max(every, time.Millisecond)
	}
	r := c.Relay(ctx, max(every, 0), sink)
	return func() {
		r.Stop()
		r.Wait()
	}
}
