package timeout_test

import (
	"context"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.9: an error that is refused a capture of its own has the last one, unless the
// function may have been elsewhere since, or nobody can tell.
func TestStackOfAnOlderCapture(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the last capture is not kept for its own sake
	bubble(t, func(t *testing.T) {
		mock := clock.NewMock()
		stacks := make(map[string]string)
		var mu sync.Mutex
		var running sync.WaitGroup
		stuck := func(name string, beatAt time.Duration, opts ...timeout.Option) {
			running.Go(func() {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					time.Sleep(beatAt)
					heartbeat.Beat(ctx)
					waitsForAFriend(ctx.Done())
					return nil
				}, opts...)
				e := stopped(t, err)
				mu.Lock()
				defer mu.Unlock()
				stacks[name] = string(e.Stack)
				if e.Kind != timeout.KindIdle {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		idle := func(d time.Duration) timeout.Config { return timeout.Config{Idle: d} }
		stuck("the first", 0, idle(2*time.Second))
		stuck("stuck since before", time.Second, idle(9*time.Second))
		stuck("beat at the same time", 2*time.Second, idle(8*time.Second))
		stuck("beat after", 2*time.Second+1, idle(8*time.Second-1))
		stuck("on another clock", time.Second, idle(9*time.Second), timeout.WithClock(mock))

		time.Sleep(5 * time.Second)
		leave := make(chan struct{})
		for range 2500 { // too many to take another
			go func() { <-leave }()
		}
		time.Sleep(6 * time.Second)
		mock.Add(time.Minute)
		running.Wait()
		close(leave)
		for name, want := range map[string]bool{
			"the first": true, "stuck since before": true, "beat at the same time": true,
			"beat after": false, "on another clock": false,
		} {
			if got := strings.Contains(stacks[name], "waitsForAFriend") || name == "beat at the same time" && stacks[name] != ""; got != want {
				t.Errorf("%s: has a stack %v, want %v:\n%s", name, got, want, stacks[name])
			}
		}
	})
}
