package notify

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// Relay passes the heartbeats of the execution of ctx, and of those within it, on to the supervisor of this process, with the
// newest detail as the status: at most once in half of WATCHDOG_USEC, or in [heartbeat.DefaultInterval] if that is not set.
// During a [heartbeat.Hold] it tells the supervisor at the same interval that the work goes on. While the execution is
// silent, so is the relay.
//
// The relay ends, and stop waits, as [heartbeat.Relay] says. Without a supervisor, and outside an execution,
// Relay does nothing. It may be called by any number of goroutines.
func Relay(ctx context.Context) (stop func()) {
	s, ok := sdnotify.TheSupervisor()
	if !ok {
		return func() {}
	}
	every := heartbeat.DefaultInterval
	if s.Within > 0 {
		every = max(s.Within/2, time.Millisecond)
	}
	return heartbeat.Relay(ctx, every, func(_ context.Context, detail any) {
		m := sdnotify.Message{Beat: true}
		if detail != nil {
			m.Status, m.Said = texts.Of(detail), true
		}
		say(s, m)
	})
}
