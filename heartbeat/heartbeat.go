package heartbeat

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
)

// DefaultInterval is the longest result of [Interval], and the default interval of [Relay].
const DefaultInterval = 10 * time.Second

// Beat records that the work of the execution of ctx, and of every enclosing execution, is still making progress. It
// renews their idle limits, unless these have already fallen due, but never their total limits. Outside an execution
// Beat does nothing. After the end of the execution a beat renews no limit, and counts only in the SinceBeat of a
// timeout.Snapshot.
//
// A loop that beats millions of times can get the execution's [Monitor] once, with [FromContext], and call
// [Monitor.Beat].
func Beat(ctx context.Context) { pulse.Of(ctx).Beat() }

// BeatWith is [Beat] with a detail, which becomes the newest detail of the execution and of every enclosing one. The
// detail is passed to the sinks of [Relay], returned by [Monitor.Detail], and included in reports about a stopped
// tool. Other goroutines may read it later, so the caller must not change what it points to. BeatWith costs one
// allocation, and a second one if detail is not a pointer.
func BeatWith(ctx context.Context, detail any) {
	if c := pulse.Of(ctx); c != nil {
		c.BeatWith(&detail)
	}
}

// Interval returns the interval at which the work under ctx should beat: the least of [DefaultInterval], half of the
// smallest idle limit of the execution and the enclosing ones, and half of the time within which the supervisor of
// this process expects a message (WATCHDOG_USEC in the environment). The result is always positive, so it can be
// passed to time.NewTicker.
func Interval(ctx context.Context) time.Duration {
	every := DefaultInterval
	if idle := pulse.Of(ctx).SmallestIdle(); idle > 0 {
		every = min(every, idle/2)
	}
	if s, _ := sdnotify.TheSupervisor(); s.Within > 0 {
		every = min(every, s.Within/2)
	}
	return max(every, 1)
}

// Hold declares that the work waits for something that cannot beat, such as a person's approval. Until release is
// called, the idle checks of the execution of ctx and of the enclosing executions are suspended; their total limits
// keep running. Both Hold and release renew the idle limit, as a beat does, but do not count as beats. A hold has no
// effect if the idle limit has already fallen due.
//
// Holds nest, and several goroutines may declare them: the idle check resumes when the last hold has been released.
// Calling release again does nothing. A hold that is not released ends with the execution of ctx.
//
// Outside an execution Hold and release do nothing.
func Hold(ctx context.Context) (release func()) {
	c := pulse.Of(ctx)
	if c == nil {
		return func() {}
	}
	return c.Hold()
}
