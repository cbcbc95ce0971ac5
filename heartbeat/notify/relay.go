package notify

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// Relay passes the heartbeats of the execution of ctx, and of nested executions, on to the supervisor of this
// process, with the newest detail as the status: at most once in half of WATCHDOG_USEC, or in
// [heartbeat.DefaultInterval] if that is not set. During a [heartbeat.Hold] it reports at the same interval that the
// work goes on. While the execution is silent, the relay sends nothing.
//
// The relay ends, and stop waits, as [heartbeat.Relay] describes. Outside an execution, and without a supervisor
// (NOTIFY_SOCKET is not set, or WATCHDOG_PID is that of another process), Relay does nothing. It is safe for
// concurrent use.
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
