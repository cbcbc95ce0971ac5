package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func isClosing(ctx context.Context) bool {
	select {
	case <-timeout.Closing(ctx):
		return true
	default:
		return false
	}
}

// SPEC 3.20: closing begins when what is left is no more than the reserve, to the nanosecond.
func TestClosingAtTheReserve(t *testing.T) {
	const total, reserve = time.Minute, 10 * time.Second
	within := func(outer timeout.Config, reserve time.Duration) func(context.Context, func(context.Context) error) error {
		return func(ctx context.Context, fn func(context.Context) error) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				return timeout.Run(ctx, fn, timeout.Config{Reserve: reserve})
			}, outer)
		}
	}
	for name, tt := range map[string]struct {
		run func(context.Context, func(context.Context) error) error
		at  time.Duration
	}{
		"its own total": {func(ctx context.Context, fn func(context.Context) error) error {
			return timeout.Run(ctx, fn, timeout.Config{Total: total, Reserve: reserve})
		}, total - reserve},
		"with heartbeats": {func(ctx context.Context, fn func(context.Context) error) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				return heartbeat.Keep(ctx, time.Second, fn)
			}, timeout.Config{Total: total, Reserve: reserve, Idle: 3 * time.Second})
		}, total - reserve},
		"the caller's deadline": {func(ctx context.Context, fn func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, total)
			defer cancel()
			return timeout.Run(ctx, fn, timeout.Config{Total: time.Hour, Reserve: reserve})
		}, total - reserve},
		"the caller's deadline, without a total": {func(ctx context.Context, fn func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, total)
			defer cancel()
			return timeout.Run(ctx, fn, timeout.Config{Reserve: reserve})
		}, total - reserve},
		"an enclosing total":                 {within(timeout.Config{Total: total}, reserve), total - reserve},
		"an enclosing reserve":               {within(timeout.Config{Total: total, Reserve: reserve}, 0), total - reserve},
		"an enclosing reserve that is more":  {within(timeout.Config{Total: total, Reserve: reserve}, time.Second), total - reserve},
		"a reserve of more than is enclosed": {within(timeout.Config{Total: total, Reserve: time.Second}, reserve), total - reserve},
		"only observed, under a deadline": {func(ctx context.Context, fn func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, total)
			defer cancel()
			return timeout.Run(ctx, fn, timeout.Config{Total: 30 * time.Second, Reserve: reserve}, timeout.WithObserveOnly())
		}, total - reserve},
		"with a muted heartbeat": {func(ctx context.Context, fn func(context.Context) error) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				return timeout.Run(pulse.Mute(ctx), fn, timeout.Config{})
			}, timeout.Config{Total: total, Reserve: reserve})
		}, total - reserve},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := tt.run(t.Context(), func(ctx context.Context) error {
					closing := timeout.Closing(ctx)
					time.Sleep(tt.at - 1)
					synctest.Wait()
					if isClosing(ctx) || timeout.FromContext(ctx).Snapshot().Closing {
						t.Error("closing before its time")
					}
					start := time.Now()
					<-closing
					if after := time.Since(start); after != 1 {
						t.Errorf("closing %v late", after-1)
					}
					if !timeout.FromContext(ctx).Snapshot().Closing {
						t.Error("the snapshot does not show it")
					}
					if left, ok := timeout.Remaining(ctx); left != reserve || !ok {
						t.Errorf("%v is left, %t; want the reserve", left, ok)
					}
					return ctx.Err() // nothing is cancelled
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// SPEC 3.20: an execution that begins with no more than its reserve is closing from the start.
func TestClosingFromTheStart(t *testing.T) {
	for left, want := range map[time.Duration]bool{10*time.Second + 1: false, 10 * time.Second: true, 1: true} {
		t.Run(left.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				var order []string
				defer synctest.Wait()
				_ = timeout.Run(ctx, func(ctx context.Context) error {
					if got := isClosing(ctx); got != want {
						t.Errorf("closing is %t, want %t", got, want)
					}
					return nil
				}, timeout.Config{Reserve: 10 * time.Second}, timeout.WithHooks(timeout.Hooks{
					Started: func(context.Context, timeout.Snapshot) { order = append(order, "started") },
					Closing: func(context.Context, timeout.Snapshot) { order = append(order, "closing") },
				}))
				if all := []string{"started", "closing"}; want && !cmp.Equal(order, all) {
					t.Errorf("hooks: %v, want %v", order, all)
				}
			})
		})
	}
}

// SPEC 3.20 on a clock of one's own.
func TestClosingOnAMockClock(t *testing.T) {
	err := mocked(t, timeout.Config{Total: time.Minute, Reserve: 10 * time.Second}, func(ctx context.Context, _ *clock.Mock, step func(time.Duration)) error {
		return timeout.Run(ctx, func(ctx context.Context) error {
			step(50*time.Second - 1)
			if left, ok := timeout.Remaining(ctx); left != 10*time.Second+1 || !ok {
				t.Errorf("%v is left, %t", left, ok)
			}
			if isClosing(ctx) {
				t.Error("closing before its time")
			}
			step(1)
			if !isClosing(ctx) {
				t.Error("not closing at its time")
			}
			return ctx.Err()
		}, timeout.Config{})
	})
	if err != nil {
		t.Error(err)
	}
}

// SPEC 3.20: a reserve that is not below the total is clamped to half of it, with a warning.
func TestReserveNormalized(t *testing.T) {
	for name, tt := range map[string]struct {
		given   timeout.Config
		want    time.Duration
		warning string
	}{
		"below the total":   {timeout.Config{Total: time.Hour, Reserve: time.Hour - time.Minute}, time.Hour - time.Minute, ""},
		"the total":         {timeout.Config{Total: time.Minute, Reserve: time.Minute}, 30 * time.Second, "reserve 1m0s is not below total timeout 1m0s; using 30s"},
		"above the total":   {timeout.Config{Total: time.Minute, Reserve: time.Hour}, 30 * time.Second, "reserve 1h0m0s is not below total timeout 1m0s; using 30s"},
		"without a total":   {timeout.Config{Reserve: time.Hour}, time.Hour, ""},
		"a negative one":    {timeout.Config{Total: time.Minute, Reserve: -1}, 0, "reserve -1ns is negative; using 0 (no reserve)"},
		"a negative total":  {timeout.Config{Total: -1, Reserve: time.Hour}, time.Hour, "total timeout -1ns is negative; using 0 (no total limit)"},
		"none without more": {timeout.Config{}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := tt.given.Normalize()
			if got.Reserve != tt.want || strings.Join(warnings, "\n") != tt.warning {
				t.Errorf("%v, %q", got.Reserve, warnings)
			}
			var log bytes.Buffer
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				if got := timeout.FromContext(ctx).Snapshot().Limits.Reserve; got != tt.want {
					t.Errorf("enforced: %v", got)
				}
				return nil
			}, tt.given, timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if err != nil || !strings.Contains(log.String(), tt.warning) {
				t.Errorf("%v, logged %q", err, log.String())
			}
		})
	}
}

// SPEC 3.20: hooks and the log tell once that an execution is closing, whatever has begun it.
func TestClosingToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex // the hooks of two executions may be called at the same time
		var told []string
		var log bytes.Buffer
		record := func(name string) []timeout.Option {
			return []timeout.Option{timeout.WithName(name), timeout.WithHooks(timeout.Hooks{
				Closing: func(ctx context.Context, s timeout.Snapshot) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, fmt.Sprint(s.Tool, " ", s.Elapsed, " ", s.Closing, " ", isClosing(ctx), " ", s.State))
				},
			}), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))}
		}
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				time.Sleep(55 * time.Second)
				if x := timeout.FromContext(ctx); x.BeginClosing() || x.Parent().BeginClosing() {
					t.Error("closing twice")
				}
				time.Sleep(time.Second)
				return nil
			}, append(record("inner"), timeout.Config{Total: 59 * time.Second, Reserve: time.Second})...)
		}, append(record("outer"), timeout.Config{Total: time.Minute, Reserve: 10 * time.Second})...)
		if err != nil {
			t.Error(err)
		}
		slices.Sort(told)
		if diff := cmp.Diff([]string{"inner 50s true true running", "outer 50s true true running"}, told); diff != "" {
			t.Error(diff)
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// SPEC 3.22: an execution without a total can be made closing from outside, with what runs in it.
func TestBeginClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inner := make(chan context.Context, 1)
		done := make(chan error, 1)
		var outer *timeout.Execution
		go func() {
			done <- timeout.Run(t.Context(), func(ctx context.Context) error {
				outer = timeout.FromContext(ctx)
				return timeout.Run(ctx, func(ctx context.Context) error {
					inner <- ctx
					<-timeout.Closing(ctx)
					return ctx.Err()
				}, timeout.Config{})
			}, timeout.Config{})
		}()
		ctx := <-inner
		synctest.Wait()
		if isClosing(ctx) || timeout.FromContext(ctx).Snapshot().Closing {
			t.Error("closing by itself")
		}
		if !outer.BeginClosing() || outer.BeginClosing() {
			t.Error("BeginClosing does not tell the first call from the second")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !outer.Snapshot().Closing || !timeout.FromContext(ctx).Snapshot().Closing {
			t.Error("not in the last snapshot")
		}
		var late *timeout.Execution
		_ = timeout.Run(t.Context(), func(ctx context.Context) error { late = timeout.FromContext(ctx); return nil })
		if late.BeginClosing() || late.Snapshot().Closing || (*timeout.Execution)(nil).BeginClosing() {
			t.Error("what has ended cannot be closing")
		}
	})
}

// The end of an inner execution takes it off the enclosing one's list, and does not close the channel.
func TestClosingAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told int
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			var early, late <-chan struct{}
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				early = timeout.Closing(ctx)
				return nil
			}, timeout.WithHooks(timeout.Hooks{Closing: func(context.Context, timeout.Snapshot) { told++ }}))
			var kept context.Context
			_ = timeout.Run(ctx, func(ctx context.Context) error { kept = ctx; return nil })
			late = timeout.Closing(kept)
			timeout.FromContext(ctx).BeginClosing()
			select {
			case <-early:
				t.Error("closing after its end")
			case <-late:
				t.Error("closing after its end")
			default:
			}
			return nil
		}, timeout.Config{})
		if told != 0 {
			t.Errorf("told %d times after the end", told)
		}
	})
}

// SPEC 3.21: the time that is left can be asked for at any time.
func TestRemaining(t *testing.T) {
	bubble(t, func(t *testing.T) {
		if left, ok := timeout.Remaining(t.Context()); left != 0 || ok {
			t.Errorf("%v, %t without a limit", left, ok)
		}
		if timeout.Closing(t.Context()) != nil {
			t.Error("a channel without an execution")
		}
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			if left, ok := timeout.Remaining(ctx); left != 0 || ok {
				t.Errorf("%v, %t without a total", left, ok)
			}
			return timeout.Run(ctx, func(ctx context.Context) error {
				time.Sleep(20 * time.Second)
				if left, ok := timeout.Remaining(ctx); left != 40*time.Second || !ok {
					t.Errorf("%v, %t; want 40 s", left, ok)
				}
				shorter, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if left, ok := timeout.Remaining(shorter); left != time.Second || !ok {
					t.Errorf("%v, %t; want 1 s", left, ok)
				}
				<-ctx.Done()
				time.Sleep(time.Second)
				if left, ok := timeout.Remaining(ctx); left != 0 || !ok {
					t.Errorf("%v, %t after the total", left, ok)
				}
				return nil
			}, timeout.Config{Total: time.Minute})
		}, timeout.Config{})
	})
}

// SPEC 3.21: a function that needs more time than is left is not started, and the error has both
// times.
func TestNeed(t *testing.T) {
	for name, tt := range map[string]struct {
		own    timeout.Config
		need   time.Duration
		limit  time.Duration // what is left by the error, 0 where the function runs
		called bool
	}{
		"exactly what is left":   {timeout.Config{}, time.Minute, 0, true},
		"a nanosecond more":      {timeout.Config{}, time.Minute + 1, time.Minute, false},
		"more than its own":      {timeout.Config{Total: time.Second}, 2 * time.Second, time.Second, false},
		"nothing":                {timeout.Config{}, 0, 0, true},
		"less than nothing":      {timeout.Config{}, -1, 0, true},
		"where none is enforced": {timeout.Config{Total: time.Hour}, time.Minute, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				_ = timeout.Run(t.Context(), func(ctx context.Context) error {
					time.Sleep(time.Minute)
					called := false
					err := timeout.Run(ctx, func(context.Context) error { called = true; return nil },
						tt.own, timeout.WithName("render"), timeout.Need(tt.need))
					if called != tt.called {
						t.Errorf("called is %t", called)
					}
					if tt.called {
						if err != nil {
							t.Error(err)
						}
						return nil
					}
					if diff := cmp.Diff(&timeout.Error{Kind: timeout.KindTotal, Tool: "render", Needed: tt.need, Limit: tt.limit}, stopped(t, err)); diff != "" {
						t.Error(diff)
					}
					if !errors.Is(err, timeout.ErrTotal) || !errors.Is(err, context.DeadlineExceeded) || timeout.ExitCode(err) != 124 {
						t.Error("not a total timeout")
					}
					return nil
				}, timeout.Config{Total: 2 * time.Minute})
			})
		})
	}
	t.Run("without a total", func(t *testing.T) {
		if err := timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.Config{}, timeout.Need(time.Hour)); err != nil {
			t.Error(err)
		}
	})
	t.Run("the text", func(t *testing.T) {
		err := timeout.Run(t.Context(), func(context.Context) error { return nil }, timeout.FastTools(), timeout.Need(90*time.Second))
		if want := "Tool needs 90s, and 60s is left."; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	})
}
