package timeout_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.16: the first goroutine to run after a stall finds it, and one nanosecond
// decides whether it is one.
func TestStall(t *testing.T) {
	for _, limits := range []struct{ idle, slack time.Duration }{
		{time.Second, 250 * time.Millisecond},
		{4 * time.Second, time.Second},
		{2 * time.Minute, time.Second},
		{48 * time.Millisecond, 12 * time.Millisecond},
		{40 * time.Millisecond, 10 * time.Millisecond},
		{time.Millisecond, 10 * time.Millisecond},
	} {
		for _, by := range []struct {
			name string
			late func(ctx context.Context) // what runs late
			ends bool                      // and then it returns
			beat uint64

			detail bool
		}{
			{"the timer", func(ctx context.Context) {}, false, 0, false},
			{"a beat", func(ctx context.Context) { heartbeat.Beat(ctx) }, false, 1, false},
			{"a beat with a detail", func(ctx context.Context) { heartbeat.BeatWith(ctx, "x") }, false, 1, true},
			{"a hold", func(ctx context.Context) { heartbeat.Hold(ctx)() }, false, 0, false},
			{"the return", func(ctx context.Context) {}, true, 0, false},
		} {
			for _, over := range []time.Duration{0, 1} {
				name := by.name + ", an ordinary late timer"
				if over > 0 {
					name = by.name + ", a stall"
				}
				t.Run(limits.idle.String()+"/"+name, func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						late := limits.idle + limits.slack + over
						err := timeout.Run(t.Context(), func(ctx context.Context) error {
							timeout.DelayTimer(ctx, time.Hour)
							time.Sleep(late)
							by.late(ctx)
							if by.ends {
								return errTool
							}
							timeout.DelayTimer(ctx, 0) // it is overdue, and so fires now
							<-ctx.Done()
							return nil
						}, timeout.Config{Idle: limits.idle})
						if by.ends && over > 0 {
							if err != errTool {
								t.Errorf("%v: the return was late because nobody could run", err)
							}
							return
						}
						want := &timeout.Error{Kind: timeout.ErrIdle, Limit: limits.idle, Figures: timeout.Figures{Elapsed: late, SinceBeat: late, LongestGap: late}}
						if by.ends {
							want.Err = errTool
						}
						if over > 0 { // afresh from the stall, which is no gap
							want.Elapsed, want.SinceBeat, want.LongestGap = late+limits.idle, limits.idle, limits.idle
							want.Beats, want.Stalls = by.beat, 1
						}
						if by.detail {
							want.Detail = "x"
						}
						if diff := cmp.Diff(*want, *stopped(t, err), cmpopts.IgnoreFields(timeout.Error{}, "Stack", "Limits"), cmpopts.EquateErrors()); diff != "" {
							t.Errorf("outcome (-want +got):\n%s", diff)
						}
					})
				})
			}
		}
	}
}

// SPEC 3.16: the total is wall clock.
func TestStallDoesNotMoveTheTotal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			timeout.DelayTimer(ctx, 10*time.Second)
			<-ctx.Done()
			return nil
		}, timeout.Config{Idle: time.Second, Total: 5 * time.Second})
		if e := stopped(t, err); e.Kind != timeout.ErrTotal || e.Elapsed != 11*time.Second || e.Stalls != 1 {
			t.Errorf("%v after %v, %d stalls", e.Kind, e.Elapsed, e.Stalls)
		}
		err = timeout.Run(t.Context(), func(ctx context.Context) error {
			timeout.DelayTimer(ctx, 10*time.Second)
			<-ctx.Done()
			return nil
		}, timeout.Config{Total: 5 * time.Second})
		if e := stopped(t, err); e.Kind != timeout.ErrTotal || e.Stalls != 0 {
			t.Errorf("without an idle limit: %v, %d stalls", e.Kind, e.Stalls)
		}
	})
}

// SPEC 3.16: a stall is logged once, whichever goroutine finds it.
func TestStallIsLogged(t *testing.T) {
	for name, fn := range map[string]func(ctx context.Context){
		"by the timer":                   func(ctx context.Context) { timeout.DelayTimer(ctx, 0) },
		"by a beat":                      func(ctx context.Context) { heartbeat.Beat(ctx); timeout.DelayTimer(ctx, 0) },
		"by a beat, and then the return": func(ctx context.Context) { heartbeat.Beat(ctx) },
		"by the return":                  func(context.Context) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var buf bytes.Buffer
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					timeout.DelayTimer(ctx, time.Hour)
					time.Sleep(900 * time.Millisecond) // the timer was set for the warning, at 0.8s
					heartbeat.Beat(ctx)                // in time, and leaves the timer overdue
					time.Sleep(3900 * time.Millisecond)
					fn(ctx)
					synctest.Wait()
					return nil
				}, timeout.Config{Idle: time.Second}, timeout.WithName("scan"), timeout.WithLogger(slog.New(slog.NewTextHandler(&buf, nil))))
				line := `level=WARN msg="the process was stalled; the tool's idle check starts afresh" tool=scan overdue=4s`
				if err != nil || strings.Count(buf.String(), line) != 1 || strings.Count(buf.String(), "\n") != 1 || !strings.Contains(buf.String(), "execution.stalls=1") {
					t.Errorf("%v, log:\n%s", err, buf.String())
				}
			})
		})
	}
}

// A clock that was given is exact: a timer on it that is late says nothing.
func TestNoStallOnAnInjectedClock(t *testing.T) {
	mock := clock.NewMock()
	err := timeout.Run(context.Background(), func(ctx context.Context) error {
		timeout.DelayTimer(ctx, time.Hour)
		mock.Add(time.Minute)
		heartbeat.Beat(ctx)
		return nil
	}, timeout.Config{Idle: time.Second}, timeout.WithClock(mock))
	if e := stopped(t, err); e.Kind != timeout.ErrIdle || e.Stalls != 0 || e.Beats != 0 {
		t.Errorf("%v, %d stalls, %d beats", e.Kind, e.Stalls, e.Beats)
	}
}
