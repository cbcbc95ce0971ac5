package timeout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The timeout of a tool does not wait for ever because its progress is being reported.
func TestSinkThatBeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(context.WithValue(t.Context(), callerKey{}, "value"), func(ctx context.Context) error {
			heartbeat.Relay(ctx, time.Second, func(sink context.Context, _ any) {
				if sink.Value(callerKey{}) != "value" {
					t.Error("the sink's context has lost its values")
				}
				heartbeat.Beat(sink)
				_ = timeout.Run(sink, func(sink context.Context) error { heartbeat.Beat(sink); return nil })
			})
			heartbeat.Beat(ctx)
			<-ctx.Done()
			return nil
		}, timeout.Config{Idle: 10 * time.Second, Total: 24 * time.Hour})
		if e := stopped(t, err); e.Kind != timeout.ErrIdle || e.Elapsed != 10*time.Second {
			t.Errorf("%v after %v", e.Kind, e.Elapsed)
		}
	})
}

// A relay whose context is over is gone, and stopping one tells the sink that is under way.
func TestRelaysEndWithTheirContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			child, cancel := context.WithCancel(ctx)
			heartbeat.Relay(child, time.Second, func(context.Context, any) { t.Error("called") })
			cancel()
			synctest.Wait()
			heartbeat.Beat(ctx)
			synctest.Wait()
			cancelled := make(chan struct{})
			stop := heartbeat.Relay(ctx, time.Second, func(ctx context.Context, _ any) {
				<-ctx.Done()
				close(cancelled)
			})
			heartbeat.Beat(ctx)
			synctest.Wait()
			stop()
			<-cancelled
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
