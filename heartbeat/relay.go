package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Event is the state of the heartbeat when a [Sink] is called. It stands for every beat since the
// call before.
type Event struct {
	Time   time.Time // of the last beat
	Count  uint64    // beats so far; see [Monitor.Count]
	Detail any       // the newest of [BeatWith], nil where there was none
}

// A Sink receives the beats of an execution. Its context is the one that [Relay] was given. It ends
// with the relay and carries no heartbeat, so that nothing a sink does is a sign of life of the tool. A
// relay never calls its sink concurrently. A panic in a sink is dropped, and the sink is called again
// for the next beat, as soon as the interval allows. A sink handles its own errors.
type Sink func(ctx context.Context, e Event)

// Relay passes the beats of the execution of ctx, and of those nested in it, on to sink, at most once
// per interval: the first beat at once, and those that came meanwhile as one, when the interval ends.
// While no beat comes, the sink is not called, so that silence stays visible. An interval that is 0 or
// negative means [DefaultInterval].
//
// The sink runs on a goroutine of its own: however slow it is, it delays no beat,
// no deadline and no result, only its own next call.
//
// The relay ends when stop is called, ctx is cancelled or the execution ends,
// whichever is first. None of them waits for the sink: a call under way has its context cancelled, no other
// follows, and what was pending is dropped. Calling stop again does nothing.
//
// Outside an execution there is nothing to relay, and stop does nothing. Relay panics
// if sink is nil.
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
	r := c.Relay(ctx, max(every, 0), func(ctx context.Context, detail any) {
		sink(ctx, Event{Time: c.LastTime(), Count: c.Count(), Detail: detail})
	})
	return r.Stop
}
