package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Event describes the heartbeat when a [Sink] is called. It covers all beats since the previous
// call.
type Event struct {
	Time   time.Time // of the last beat, or of the last beginning or end of a hold
	Count  uint64    // number of beats so far; see [Monitor.Count]
	Detail any       // newest detail given to [BeatWith], even before the previous call; nil if there was none
	Held   bool      // the idle check is suspended by a [Hold], so no beat is expected
}

// A Sink receives the beats of an execution. Its context has the values of the one given to [Relay],
// except that it carries no heartbeat: nothing that a sink does counts as a sign of life of the tool.
// It is not cancelled with the execution, so that a sink can store what it was given, but 2 s after
// the relay has ended. A relay never calls its sink concurrently. A panic in a sink is dropped; the
// sink is called again for the next beat, as soon as the interval allows. A sink handles its own
// errors.
type Sink func(ctx context.Context, e Event)

// Relay passes the beats of the execution of ctx, and of nested executions, on to sink, at most
// once per interval: the first beat at once, and the later ones together, when the interval ends.
// While no beat comes it does not call the sink, so silence stays visible, except during a [Hold],
// when silence means nothing: then it also calls the sink at the beginning, once per interval, and
// at the end.
//
// The sink runs on a goroutine of its own. A slow sink delays its own next call, but no beat and no
// deadline.
//
// The relay ends when stop is called or when the execution ends, whichever comes first. A detail
// that has not been passed on by then is passed on; plain beats are dropped. That call, and one in
// progress, have 2 s, then their context is cancelled. Stop waits for them, for no longer than that,
// and no call begins after it has returned; the end of the execution waits for nothing. Defer stop
// in the function that does the work: then the sink has the newest detail before the result is
// known. Calling stop again waits, too. A sink must not call it.
//
// If ctx is cancelled before, as by a limit, the relay passes on a detail that has not been, and
// makes no more calls until its end.
//
// Outside an execution the sink is never called. Relay panics if sink is nil.
//
// An interval of 0 means [DefaultInterval]; a negative one means no pause between two calls, and no
// calls in the middle of a hold. The shortest is 1 ms.
func Relay(ctx context.Context, every time.Duration, sink Sink) (stop func()) {
	if sink == nil {
		panic("heartbeat: nil Sink")
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
	r := c.Relay(ctx, max(every, 0), func(ctx context.Context, detail any) {
		sink(ctx, Event{Time: c.LastTime(), Count: c.Count(), Detail: detail, Held: c.OnHold()})
	})
	return func() {
		r.Stop()
		r.Wait()
	}
}
