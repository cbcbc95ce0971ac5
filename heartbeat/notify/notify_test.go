package notify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/heartbeat/notify"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// listen has a fake supervisor listen in a bubble: it wants to hear something within a time. heard has the messages with their
// instants.
func listen(t *testing.T, within time.Duration) (heard func() []string) {
	var mu sync.Mutex
	var all []string
	begun := time.Now()
	t.Setenv("NOTIFY_SOCKET", "/fake")
	if within > 0 {
		t.Setenv("WATCHDOG_USEC", fmt.Sprint(within.Microseconds()))
	}
	t.Cleanup(notify.SetSend(func(addr, text string) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, fmt.Sprint(time.Since(begun), " ", strings.ReplaceAll(text, "\n", " ")))
		return nil
	}))
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// Guarantees 1 to 3 and 5, SPEC 18.3: a relay passes on heartbeats with the newest detail, and holds, and nothing else.
func TestRelay(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name   string
		within time.Duration
		work   func(ctx context.Context, stop func())
		want   []string
	}{
		{"silence", 10 * s, func(context.Context, func()) { time.Sleep(time.Hour) }, nil},
		{"heartbeats", 10 * s, func(ctx context.Context, _ func()) {
			for range 5 {
				time.Sleep(2 * s)
				heartbeat.Beat(ctx)
			}
		}, []string{"2s WATCHDOG=1", "7s WATCHDOG=1"}},
		{"the newest detail", 10 * s, func(ctx context.Context, _ func()) {
			for i := range 4 {
				time.Sleep(s)
				heartbeat.BeatWith(ctx, fmt.Sprint("step ", i))
			}
			time.Sleep(s * 10)
		}, []string{"1s STATUS=step 0 WATCHDOG=1", "6s STATUS=step 3 WATCHDOG=1"}},
		{"a hold", 10 * s, func(ctx context.Context, _ func()) {
			time.Sleep(21 * s)
			release := heartbeat.Hold(ctx)
			time.Sleep(18 * s)
			release()
			time.Sleep(time.Hour)
		}, []string{"21s WATCHDOG=1", "26s WATCHDOG=1", "31s WATCHDOG=1", "36s WATCHDOG=1", "41s WATCHDOG=1"}},
		{"stop", 10 * s, func(ctx context.Context, stop func()) {
			heartbeat.Beat(ctx)
			time.Sleep(s)
			stop()
			stop()
			heartbeat.Hold(ctx)
			time.Sleep(time.Minute)
			heartbeat.Beat(ctx)
			time.Sleep(time.Minute)
		}, []string{"0s WATCHDOG=1"}},
		{"a supervisor that does not say", 0, func(ctx context.Context, _ func()) {
			for range 15 {
				time.Sleep(s)
				heartbeat.Beat(ctx)
			}
		}, []string{"1s WATCHDOG=1", "11s WATCHDOG=1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			heard := func() []string { return nil }
			env := t
			synctest.Test(t, func(t *testing.T) {
				heard = listen(env, tc.within)
				_ = timeout.Run(context.Background(), func(ctx context.Context) error {
					tc.work(ctx, notify.Relay(ctx))
					return nil
				}, timeout.Config{})
				time.Sleep(time.Hour) // the relay is over
				got = heard()
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// SPEC 18.3: a program with many executions is fed as long as none has exceeded its idle limit, and while one is held.
func TestWatch(t *testing.T) {
	const s = time.Second
	limits := timeout.Config{Idle: 5 * s, Grace: 2 * s}
	for _, tc := range []struct {
		name string
		work func()
		want []string // in the first 20 s
	}{
		{"nothing runs", func() {}, []string{"0s", "4s", "8s", "12s", "16s", "20s"}},
		{"one that beats", func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				for range 20 {
					time.Sleep(s)
					heartbeat.Beat(ctx)
				}
				return nil
			}, limits)
		}, []string{"0s", "4s", "8s", "12s", "16s", "20s"}},
		{"one that is stopped and returns", func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			}, limits)
		}, []string{"0s", "4s", "8s", "12s", "16s", "20s"}},
		{"one that can't be stopped, until it returns", func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				time.Sleep(15 * s)
				return nil
			}, limits)
		}, []string{"0s", "4s", "16s", "20s"}},
		{"one that beats on after its total", func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				for range 30 {
					time.Sleep(s)
					heartbeat.Beat(ctx)
				}
				return nil
			}, timeout.Config{Total: 3 * s, Idle: 5 * s, Grace: 2 * s})
		}, []string{"0s", "4s", "8s", "12s", "16s", "20s"}},
		{"one that hangs after its total", func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				for range 6 {
					time.Sleep(s)
					heartbeat.Beat(ctx)
				}
				time.Sleep(9 * s)
				return nil
			}, timeout.Config{Total: 3 * s, Idle: 5 * s, Grace: 2 * s})
		}, []string{"0s", "4s", "8s", "16s", "20s"}},
		{"one that is held", func() {
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				defer heartbeat.Hold(ctx)()
				time.Sleep(15 * s)
				return nil
			}, limits)
		}, []string{"0s", "4s", "8s", "12s", "16s", "20s"}},
		{"one that is held beside one that can't be stopped", func() {
			go func() {
				_ = timeout.Run(context.Background(), func(ctx context.Context) error {
					time.Sleep(15 * s)
					return nil
				}, limits)
			}()
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				defer heartbeat.Hold(ctx)()
				time.Sleep(11 * s)
				return nil
			}, limits)
		}, []string{"0s", "4s", "8s", "16s", "20s"}},
		{"one without an idle limit, and one that is only observed", func() {
			go func() {
				_ = timeout.Run(context.Background(), func(ctx context.Context) error {
					time.Sleep(15 * s)
					return nil
				}, timeout.Config{})
			}()
			_ = timeout.Run(context.Background(), func(ctx context.Context) error {
				time.Sleep(15 * s)
				return nil
			}, limits, timeout.WithObserveOnly())
		}, []string{"0s", "4s", "8s", "12s", "16s", "20s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			env := t
			synctest.Test(t, func(t *testing.T) {
				heard := listen(env, 16*s)
				stop := notify.Watch()
				synctest.Wait()
				go tc.work()
				time.Sleep(20*s + 1)
				stop()
				stop()
				time.Sleep(time.Minute)
				for _, m := range heard() {
					at, text, _ := strings.Cut(m, " ")
					if text != "WATCHDOG=1" {
						t.Errorf("sent %s", m)
					}
					got = append(got, at)
				}
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Guarantee 5: without a supervisor, and where it waits for another process, nothing is sent.
func TestNoSupervisor(t *testing.T) {
	for _, env := range []map[string]string{
		{},
		{"WATCHDOG_USEC": "1000"},
		{"NOTIFY_SOCKET": "/fake", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
	} {
		t.Run(fmt.Sprint(env), func(t *testing.T) {
			for name, value := range env {
				t.Setenv(name, value)
			}
			defer notify.SetSend(func(_, text string) error { t.Errorf("sent %q", text); return nil })()
			synctest.Test(t, func(t *testing.T) {
				defer notify.Watch()()
				_ = timeout.Run(context.Background(), func(ctx context.Context) error {
					defer notify.Relay(ctx)()
					heartbeat.Beat(ctx)
					time.Sleep(time.Hour)
					return nil
				}, timeout.Config{})
			})
		})
	}
	if err := notify.Send("READY=1"); !errors.Is(err, notify.ErrNoSupervisor) {
		t.Errorf("%v", err)
	}
	t.Setenv("NOTIFY_SOCKET", "/fake")
	defer notify.Relay(t.Context())() // outside an execution
	defer notify.Watch()()            // the supervisor waits for nothing
}
