package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Event describes the heartbeat when a [Sink] is called. It covers all beats since the previous
// call.
type Event struct {
	Time   time.Time // of the last beat
	Count  uint64    // number of beats so far; see [Monitor.Count]
	Detail any       // newest detail given to [BeatWith], even before the previous call; nil if there was none
}

// A Sink receives the beats of an execution. Its context is derived from the one given to [Relay]:
// it ends with the relay, and it carries no heartbeat, so nothing that a sink does counts as a sign
// of life of the tool. A relay never calls its sink concurrently. A panic in a sink is dropped; the
// sink is called again for the next beat, as soon as the interval allows. A sink handles its own
// errors.
type Sink func(ctx context.Context, e Event)

// Relay passes the beats of the execution of ctx, and of nested executions, on to sink, at most
// once per interval: the first beat at once, and the later ones together, when the interval ends.
// It does not call the sink while no beat comes, so silence stays visible.
//
// The sink runs on a goroutine of its own. A slow sink delays its own next call, but no beat, no
// deadline and no result.
//
// The relay ends when stop is called, when ctx is cancelled or when the execution ends, whichever
// comes first. None of these waits for the sink: a call in progress has its context cancelled, and
// no other call follows. Beats that have not been passed on are dropped. Calling stop again does
// nothing.
//
// Outside an execution the sink is never called. Relay panics if sink is nil.
//
// An interval of 0 means [DefaultInterval]; a negative one means no pause between two calls.
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
