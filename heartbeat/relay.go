package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// Relay passes the beats of the execution of ctx, and of nested executions, on to sink, with the newest detail (nil
// if there was none), at most once per interval: the first beat at once, and later beats together, at the end of the
// interval. Without a beat it does not call sink, so silence stays visible. There are two exceptions: a command of
// package procgroup that begins to wait for input, and a [Hold], during which silence is no sign of a stuck tool:
// Relay calls sink at the beginning of the hold, once per interval, and at its end.
//
// The calls are made one at a time, on a separate goroutine. A slow sink delays its own next call, but no beat and no
// deadline. A panic of the sink is dropped. The context of a call has the values of ctx but carries no heartbeat, so
// a beat in the sink does not count. It is not cancelled with the execution, so that a sink can store the detail.
//
// The relay ends when stop is called or when the execution ends, whichever comes first. It then passes on a detail
// that it has not passed on yet, but no plain beat. The context of that call, and of a call in progress, is cancelled
// after 2 s. stop waits for both calls, but no longer than that, and no call begins after stop has returned; the end
// of the execution waits for nothing. Defer stop in the function that does the work, so that the sink has the newest
// detail before the result is known. A second call of stop waits as well. A sink must not call stop. If ctx is
// cancelled earlier, as by a limit, the relay passes on a new detail at once, and makes no more calls until its end.
//
// Outside an execution the sink is never called. Relay panics if sink is nil.
//
// An interval of 0 means [DefaultInterval]; a negative interval means no pause between two calls, and no calls in the
// middle of a hold. The shortest positive interval is 1 ms.
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
