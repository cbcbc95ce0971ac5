package heartbeat_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// No call of a sink begins after stop has returned, also where the call before ends as stop no longer waits; and a relay
// that begins when its context has ended passes on nothing from before. Many times, since goroutines are in a race.
func TestRelayNotLate(t *testing.T) {
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			_ = timeout.Run(t.Context(), func(ctx context.Context) error {
				heartbeat.BeatWith(ctx, "before")
				ended, cancel := context.WithCancel(ctx)
				cancel()
				heartbeat.Relay(ended, time.Second, func(context.Context, any) { t.Error("a detail from before the relay") })()
				var stopped atomic.Bool
				stop := heartbeat.Relay(ctx, time.Second, func(_ context.Context, detail any) {
					if stopped.Load() {
						t.Error("a call after stop has returned")
					}
					time.Sleep(2 * time.Second)
				})
				heartbeat.BeatWith(ctx, 1)
				synctest.Wait()
				heartbeat.BeatWith(ctx, 2)
				stop()
				stopped.Store(true)
				return nil
			})
			time.Sleep(10 * time.Second)
		})
	}
}
