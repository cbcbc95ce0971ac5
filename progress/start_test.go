package progress_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	s    = time.Second
	tick = time.Microsecond
)

// A note is one notification as the client received it.
type note struct {
	At              time.Duration
	Progress, Total float64
	Message         string
}

// bubble runs a named test in simulated time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// A client records what it receives. Its notifier fails each time, which must stop nothing.
type client struct {
	start time.Time
	mu    sync.Mutex
	notes []note
}

func (c *client) notify(_ context.Context, n progress.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, note{time.Since(c.start), n.Progress, n.Total, n.Message})
	return errors.New("disconnected")
}

func (c *client) want(t *testing.T, want ...note) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff(want, c.notes); diff != "" {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
}

func (c *client) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.notes)
}

// call runs a tool in a bubble as a server would, and returns the client.
func call(t *testing.T, token any, every time.Duration, tool func(ctx context.Context)) *client {
	t.Helper()
	c := &client{start: time.Now()}
	stop := func() {}
	err := timeout.Run(t.Context(), func(ctx context.Context) error { tool(ctx); return nil }, timeout.Config{},
		timeout.WithHooks(timeout.Hooks{Started: func(ctx context.Context, _ timeout.Snapshot) {
			stop = progress.Start(ctx, token, every, c.notify)
		}}))
	stop()
	stop()
	before := c.len()
	time.Sleep(time.Hour)
	if err != nil || c.len() != before {
		t.Errorf("%v, %d notifications after the end", err, c.len()-before)
	}
	return c
}

// report calls Report and waits for the delivery.
func report(ctx context.Context, u progress.Update) {
	progress.Report(ctx, u)
	synctest.Wait()
}

// SPEC 7.2, 7.3, 7.6: updates are sent at most once per interval, progress increases, and silence
// sends nothing.
func TestStart(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct {
		name  string
		every time.Duration
		tool  func(ctx context.Context)
		want  []note
	}{
		{"the first at once, then the newest", 0, func(ctx context.Context) {
			time.Sleep(3 * s)
			report(ctx, progress.Update{Progress: 1, Total: 10, Message: "a"})
			for i := range 12 {
				time.Sleep(1500 * time.Millisecond)
				report(ctx, progress.Update{Progress: float64(2 + i), Total: 30})
			}
			time.Sleep(20 * s)
		}, []note{{3 * s, 1, 10, "a"}, {13 * s, 7, 30, ""}, {23 * s, 13, 30, ""}}},
		{"a given interval", 2 * s, func(ctx context.Context) {
			for i := range 4 {
				report(ctx, progress.Update{Progress: float64(i)})
				time.Sleep(1500 * time.Millisecond)
			}
			time.Sleep(s)
		}, []note{{0, 0, 0, ""}, {2 * s, 1, 0, ""}, {4 * s, 2, 0, ""}, {6 * s, 3, 0, ""}}},
		{"the interval of 0 is 10 s", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Progress: 1})
			report(ctx, progress.Update{Progress: 2})
			time.Sleep(10*s - 1)
			report(ctx, progress.Update{Progress: 3})
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			time.Sleep(s)
		}, []note{{0, 1, 0, ""}, {10 * s, 3, 0, ""}}},
		{"a negative interval means no pause", -1, func(ctx context.Context) {
			for i := range 3 {
				report(ctx, progress.Update{Progress: float64(i)})
				time.Sleep(time.Nanosecond)
			}
		}, []note{{0, 0, 0, ""}, {1, 1, 0, ""}, {2, 2, 0, ""}}},
		{"silence", 0, func(context.Context) { time.Sleep(time.Hour) }, nil},
		{"plain beats say no more than that it lives", 0, func(ctx context.Context) {
			for range 3 {
				heartbeat.Beat(ctx)
				time.Sleep(10 * s)
			}
		}, []note{{0, 0, 0, ""}, {10 * s, 1e-6, 0, ""}, {20 * s, 2e-6, 0, ""}}},
		{"beats after an update keep its total and message", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
			time.Sleep(10 * s)
			heartbeat.Beat(ctx)
			synctest.Wait()
		}, []note{{0, 3, 10, "main.go"}, {10 * s, 3 + 1e-6, 10, "main.go"}}},
		{"steps in all mixes", tick, func(ctx context.Context) {
			for _, p := range []float64{0, 0, 0, 0, 0, 0, 0, 2.5, 2.5, 1, math.NaN(), 2.5000015, 1 << 53, 1 << 53, 7, 1e300, inf} {
				report(ctx, progress.Update{Progress: p})
				time.Sleep(tick)
			}
		}, func() (all []note) {
			for i, p := range []float64{0, 0.000001, 0.000002, 0.000003, 0.000004, 0.000005, 0.000006, 2.5, 2.500001, 2.500002, 2.500003,
				2.500004, 1 << 53, 1<<53 + 2, 1<<53 + 4, 1e300, math.Nextafter(1e300, inf)} {
				all = append(all, note{At: time.Duration(i) * tick, Progress: p})
			}
			return all
		}()},
		{"an unknown total is omitted", tick, func(ctx context.Context) {
			for i, total := range []float64{math.NaN(), inf, math.Inf(-1), -1, 7} {
				report(ctx, progress.Update{Progress: float64(i), Total: total})
				time.Sleep(tick)
			}
		}, []note{{0, 0, 0, ""}, {tick, 1, 0, ""}, {2 * tick, 2, 0, ""}, {3 * tick, 3, 0, ""}, {4 * tick, 4, 7, ""}}},
		{"the largest number is the last", tick, func(ctx context.Context) {
			for range 3 {
				report(ctx, progress.Update{Progress: math.MaxFloat64})
				time.Sleep(tick)
			}
		}, []note{{0, math.MaxFloat64, 0, ""}}},
		{"of a nested execution", 0, func(ctx context.Context) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				time.Sleep(s)
				report(ctx, progress.Update{Progress: 4})
				time.Sleep(20 * s)
				return nil
			}, timeout.Config{})
		}, []note{{0, 0, 0, ""}, {10 * s, 4, 0, ""}}},
		{"the newest that is pending at the end goes out", 0, func(ctx context.Context) {
			for i := range 5 {
				report(ctx, progress.Update{Progress: float64(i), Total: 4})
			}
			heartbeat.Beat(ctx)
			time.Sleep(s)
		}, []note{{0, 0, 4, ""}, {s, 4, 4, ""}}},
		{"a beat that is pending at the end does not", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Progress: 1, Message: "a"})
			heartbeat.Beat(ctx)
			time.Sleep(s)
		}, []note{{0, 1, 0, "a"}}},
		{"nor does an update that says nothing new", 0, func(ctx context.Context) {
			for range 2 {
				report(ctx, progress.Update{Progress: math.NaN(), Total: math.NaN(), Message: "a"})
			}
		}, []note{{0, 0, 0, "a"}}},
		{"a smaller value with a new message does", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Progress: 2, Message: "a"})
			report(ctx, progress.Update{Progress: 1, Message: "b"})
		}, []note{{0, 2, 0, "a"}, {0, 2 + 1e-6, 0, "b"}}},
		{"nor does a wait", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Progress: 1, Message: "a"})
			go func() { _, _ = progress.Await(ctx, "rm", progress.Wait{}, person(time.Hour)) }()
			synctest.Wait()
		}, []note{{0, 1, 0, "a"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { call(t, "token", tc.every, tc.tool).want(t, tc.want...) })
		})
	}
}

func TestStartOutsideAnExecution(t *testing.T) {
	stop := progress.Start(context.Background(), "t", 0, func(context.Context, progress.Notification) error {
		t.Error("called")
		return nil
	})
	progress.Report(context.Background(), progress.Update{})
	stop()
	defer func() {
		if bad, ok := recover().(*timeout.ConfigError); !ok || bad.Key != "send" {
			t.Errorf("a nil Notifier: %v", bad)
		}
	}()
	progress.Start(context.Background(), "t", 0, nil)
}

// The notifier's context has the values of the call's context but no heartbeat, and
// outlives the execution.
func TestNotifierContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		stop := func() {}
		_ = timeout.Run(context.WithValue(t.Context(), key{}, "session"), func(ctx context.Context) error {
			stop = progress.Start(ctx, "t", 0, func(ctx context.Context, _ progress.Notification) error {
				time.Sleep(20 * time.Millisecond) // the tool returns after 10
				_, limited := ctx.Deadline()
				if ctx.Value(key{}) != "session" || heartbeat.FromContext(ctx) != nil || ctx.Err() != nil || limited {
					t.Errorf("%v, %v, %v, %v", ctx.Value(key{}), heartbeat.FromContext(ctx), ctx.Err(), limited)
				}
				return nil
			})
			progress.Report(ctx, progress.Update{})
			time.Sleep(10 * time.Millisecond)
			return nil
		}, timeout.Config{Total: time.Hour})
		stop()
	})
}

// SPEC 7.4, 7.5: whatever a notifier does, the tool and its limits are on time, stop takes a
// bounded time, and nothing is sent after it. The answer follows the last notification after 5 ms.
func TestBadNotifiers(t *testing.T) {
	const ms = time.Millisecond
	cancelled := func(ctx context.Context, _ int32) { <-ctx.Done() }
	for _, tc := range []struct {
		name   string
		notify func(ctx context.Context, n int32)
		last   bool          // an update is pending at the end
		stop   time.Duration // how long stop takes
		calls  int32
	}{
		{"panics", func(context.Context, int32) { panic("boom") }, false, 0, 1},
		{"returns just in time", func(context.Context, int32) { time.Sleep(5*s + 99*ms) }, false, 104 * ms, 1},
		{"returns when it is cancelled", cancelled, false, 100 * ms, 1},
		{"is deaf", func(context.Context, int32) { time.Sleep(time.Hour) }, false, 200 * ms, 1},
		{"goexits, the last too", func(context.Context, int32) { runtime.Goexit() }, true, 0, 2},
		{"takes its time, the last too", func(context.Context, int32) { time.Sleep(99 * ms) }, true, 104 * ms, 2},
		{"returns just in time, and the last is cancelled", func(ctx context.Context, _ int32) {
			select {
			case <-time.After(5*s + 99*ms):
			case <-ctx.Done():
			}
		}, true, 100 * ms, 2},
		{"has no time left for the last", cancelled, true, 100 * ms, 1},
		{"is quick, and deaf to the last", func(_ context.Context, n int32) {
			if n > 1 {
				time.Sleep(time.Hour)
			}
		}, true, 200 * ms, 2},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			var began atomic.Int32
			stop := func() {}
			start := time.Now()
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				stop = progress.Start(ctx, "t", 10*s, func(ctx context.Context, _ progress.Notification) error {
					tc.notify(ctx, began.Add(1))
					return nil
				})
				progress.Report(ctx, progress.Update{})
				if synctest.Wait(); tc.last {
					progress.Report(ctx, progress.Update{Message: "last"})
				}
				<-ctx.Done()
				return nil
			}, timeout.Config{Idle: 5 * s})
			if !errors.Is(err, timeout.ErrIdle) || time.Since(start) != 5*s {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(stop)
			}
			wg.Wait()
			if took := time.Since(start) - 5*s; took != tc.stop {
				t.Errorf("stop took %v, want %v", took, tc.stop)
			}
			time.Sleep(2 * time.Hour)
			if began.Load() != tc.calls {
				t.Errorf("called %d times, want %d", began.Load(), tc.calls)
			}
		})
	}
}

// SPEC 7.4: stop keeps its distance from a notification that was just sent, and only from that.
func TestSettle(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name   string
		linger time.Duration // after the last update
		err    error         // of the notifier
		want   time.Duration
	}{
		{"at once", 0, nil, 5 * ms},
		{"after a while", 3 * ms, nil, 2 * ms},
		{"after long", 5 * ms, nil, 0},
		{"not sent", 0, errors.New("disconnected"), 0},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			stop := func() {}
			_ = timeout.Run(t.Context(), func(ctx context.Context) error {
				stop = progress.Start(ctx, "t", 0, func(context.Context, progress.Notification) error { return tc.err })
				report(ctx, progress.Update{Progress: 1})
				time.Sleep(tc.linger)
				return nil
			}, timeout.Config{})
			start := time.Now()
			if stop(); time.Since(start) != tc.want {
				t.Errorf("stop took %v, want %v", time.Since(start), tc.want)
			}
		})
	}
}

// SPEC 3.25: what a tool says in one message reaches the client up to a bound, with a count of the rest.
func TestLongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := call(t, "t", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Message: strings.Repeat("x", 10<<20)})
			time.Sleep(s)
		})
		if len(c.notes) != 1 || len(c.notes[0].Message) > 65<<10 || !strings.HasSuffix(c.notes[0].Message, " bytes more)") {
			t.Errorf("%d notifications, the first of %d bytes", len(c.notes), len(c.notes[0].Message))
		}
	})
}
