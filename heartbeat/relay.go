package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// An Event is what a [Sink] learns: the state of the heartbeat at the moment of
// the delivery, so it stands for every beat since the one before.
type Event struct {
	Time   time.Time // of the last beat
	Count  uint64    // beats so far; see [Monitor.Count]
	Detail any       // the newest of [BeatWith], nil where there was none
}

// A Sink receives the beats of an execution. Its context is the one that [Relay] was
// given, ends with the relay, and carries no heartbeat, so that what a sink does is no
// sign of life of the tool. It is never called concurrently by one relay. An error is no one's to handle here and
// is dropped, and so is a panic: the sink is called again for the next beat, as
// soon as the interval allows.
type Sink interface {
	Beat(ctx context.Context, e Event) error
}

// SinkFunc is a function as a [Sink].
type SinkFunc func(ctx context.Context, e Event) error

// Beat calls f.
func (f SinkFunc) Beat(ctx context.Context, e Event) error { return f(ctx, e) }

// Relay passes the beats of the execution of ctx, those of nested executions included, on
// to s, at most once per interval: the first at once, and what has come meanwhile, as
// one, when the interval ends. Where every is 0 or negative it is [DefaultInterval].
// While no beat comes, the sink is not called, so silence stays visible to whoever
// listens.
//
// The sink runs on a goroutine of its own: however slow it is, it delays no beat,
// no deadline and no result, only its own next call.
//
// The relay ends when stop is called, ctx is cancelled or the execution ends,
// whichever is first. None of them waits for the sink: a call under way has its context cancelled, no other
// follows, and what was pending is dropped. Calling stop again does nothing.
//
// Outside an execution there is nothing to relay, and stop does nothing. Relay panics
// if s is nil.
func Relay(ctx context.Context, every time.Duration, s Sink) (stop func()) {
	if s == nil {
		panic("heartbeat: nil Sink")
	}
	c := pulse.Of(ctx)
	if c == nil {
		return func() {}
	}
	if every <= 0 {
		every = DefaultInterval
	}
	r := c.Relay(ctx, every, func(ctx context.Context, detail any) {
		e := Event{Time: c.LastTime(), Count: c.Count(), Detail: detail}
		_ = s.Beat(ctx, e)
	})
	return r.Stop
}
