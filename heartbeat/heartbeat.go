package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// DefaultInterval is the interval of automatic beats and of relays where none is
// given.
const DefaultInterval = 10 * time.Second

// Beat tells the execution of ctx, and every execution around it, that the work is
// still making progress. It renews their idle limits and never their total.
// Outside an execution, or after its end, it does nothing.
//
// A loop that beats millions of times can look the execution up once, with
// [FromContext], and call [Monitor.Beat].
func Beat(ctx context.Context) { pulse.Of(ctx).Beat() }

// BeatWith is [Beat] with a detail, which is remembered as the newest: the sinks of [Relay]
// get it, [Monitor.Detail] returns it, and what is said of a stopped tool has it. The detail may be
// read at any later time, by another goroutine: do not change what it points to. It costs one
// allocation, and one more where detail is not a pointer.
func BeatWith(ctx context.Context, detail any) {
	if c := pulse.Of(ctx); c != nil {
		c.BeatWith(&detail)
	}
}

// Interval is how often the handler of ctx should beat: [DefaultInterval], or half
// of the idle limit where that is less. Nested executions count too: the smallest
// idle limit decides. It is never 0, so it can feed a ticker.
func Interval(ctx context.Context) time.Duration {
	if idle := pulse.Of(ctx).SmallestIdle(); idle > 0 {
		return min(DefaultInterval, max(idle/2, 1))
	}
	return DefaultInterval
}

// Hold declares that the work waits for something that cannot beat, such as a
// person's approval. Until release is called, the idle checks of the execution of
// ctx and of those around it are held; their total limits run on. Both the call and
// the release renew the idle limit, as a beat does, but are not counted as beats. A
// hold that comes when the limit has already fallen due is too late.
//
// Holds nest, and may be declared by several goroutines: the idle check is on again
// when the last has been released. Calling release again does nothing. A hold that
// is never released ends with the execution of ctx.
//
// Outside an execution it does nothing, and so does release.
func Hold(ctx context.Context) (release func()) {
	c := pulse.Of(ctx)
	if c == nil {
		return func() {}
	}
	return c.Hold()
}
