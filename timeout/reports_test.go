package timeout_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Reports of moments do not pile up behind a hook that blocks, and the log says how many were left out.
func TestReportsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		calls := 0
		var dropped atomic.Int32 // mu is held for as long as a hook waits
		log := &handler{do: func(_ context.Context, message string) {
			if message == "hooks or the log handler were too slow for all reports" {
				dropped.Add(1)
			}
		}}
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			for range 1000 {
				time.Sleep(9 * time.Second)
				heartbeat.Beat(ctx)
			}
			close(release)
			return nil
		}, timeout.Config{Idle: 10 * time.Second}, timeout.WithLogger(slog.New(log)), timeout.WithHooks(timeout.Hooks{
			NearIdle: func(context.Context, timeout.Snapshot) {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls == 1 {
					<-release
				}
			},
		}))
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || calls < 2 || calls > 100 || dropped.Load() != 1 {
			t.Errorf("%v, %d calls, %d lines", err, calls, dropped.Load())
		}
	})
}

// A clock that panics once the function runs ends the execution, and not the process.
func TestClockThatPanics(t *testing.T) {
	c := &brokenClock{Mock: clock.NewMock()}
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		c.broken.Store(true)
		heartbeat.Hold(ctx)()
		heartbeat.Beat(ctx)
		<-ctx.Done()
		return nil
	}, timeout.Config{Total: time.Hour, Grace: time.Millisecond}, timeout.WithClock(c), timeout.WithHooks(timeout.Hooks{
		Started: func(ctx context.Context, _ timeout.Snapshot) {
			x := timeout.FromContext(ctx)
			time.AfterFunc(10*time.Millisecond, func() { x.Snapshot(); x.Abort(nil) })
		},
	}))
	if err == nil {
		t.Error("not stopped")
	}
}

type brokenClock struct {
	*clock.Mock
	broken atomic.Bool
}

func (c *brokenClock) Now() time.Time {
	if c.broken.Load() {
		panic("broken")
	}
	return c.Mock.Now()
}
