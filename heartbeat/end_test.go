package heartbeat_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.15, 4.6: after the end of an execution, beats and holds with its context do nothing, for the enclosing execution
// either, and nor does the release of a hold that was under way. The time of that counts.
func TestAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped *timeout.Error
		err := timeout.Run(t.Context(), func(outer context.Context) error {
			var inner context.Context
			var release func()
			err := timeout.Run(outer, func(ctx context.Context) error {
				inner, release = ctx, heartbeat.Hold(ctx)
				time.Sleep(3 * time.Second)
				return nil
			}, timeout.Config{})
			if err != nil {
				return err
			}
			if held := timeout.FromContext(inner).Snapshot().Held; held != 3*time.Second {
				t.Errorf("held for %v", held)
			}
			time.Sleep(time.Second)
			heartbeat.Beat(inner)
			heartbeat.BeatWith(inner, "late")
			defer heartbeat.Hold(inner)()
			release()
			<-outer.Done()
			return nil
		}, timeout.Config{Idle: 5 * time.Second, Total: time.Minute})
		if !errors.As(err, &stopped) || stopped.Elapsed != 8*time.Second || stopped.Detail != nil {
			t.Errorf("%+v, want the idle limit 5 s after the hold", err)
		}
	})
}
