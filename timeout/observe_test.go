package timeout_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// An observer notes what would have been stopped, and the log.
type observer struct {
	journal
	log      bytes.Buffer
	finished timeout.Snapshot
}

func (o *observer) options() timeout.Option {
	return timeout.WithHooks(timeout.Hooks{
		Exceeded: func(ctx context.Context, s timeout.Snapshot) {
			e := s.Err.(*timeout.Error)
			o.add("%v of %v after %v", e.Kind, e.Limit, e.Elapsed)
			// The function may return while this runs, and its context is then done: so the state
			// is asked for after that, and is not the one of s, which was before.
			err := ctx.Err()
			now := timeout.FromContext(ctx).Snapshot().State
			if err != nil && now < timeout.StateStopping || !s.ObserveOnly || s.Observed == nil {
				o.add("%v in state %v, %+v", err, now, s)
			}
		},
		Finished: func(_ context.Context, s timeout.Snapshot) { o.finished = s },
	})
}

func (o *observer) logger() timeout.Option {
	return timeout.WithLogger(slog.New(slog.NewTextHandler(&o.log, nil)))
}

// SPEC 3.18: limits are judged to the nanosecond and reported once each, and nothing is
// cancelled.
func TestObserveOnly(t *testing.T) {
	const s = time.Second
	work := func(steps ...time.Duration) func(context.Context) {
		return func(ctx context.Context) {
			for i, d := range steps {
				if i > 0 {
					heart(ctx)
				}
				time.Sleep(d)
			}
		}
	}
	both := timeout.Config{Idle: 10 * s, Total: 60 * s}
	for _, tc := range []struct {
		name   string
		limits timeout.Config
		fn     func(context.Context)
		want   []string
		gap    time.Duration
		needed string // in the log
	}{
		{"in time", both, work(10*s-1, 10*s-1), nil, 10*s - 1, ""},
		{"a beat at the idle limit", both, work(10*s, s), []string{"idle of 10s after 10s"}, 10 * s, "idle_needed=11s"},
		{"a beat after it", both, work(10*s+1, s), []string{"idle of 10s after 10s"}, 10*s + 1, "idle_needed=11s"},
		{"a return at it", both, work(s, 10*s), []string{"idle of 10s after 11s"}, 10 * s, "idle_needed=11s"},
		{"a return before it", both, work(s, 10*s-1), nil, 10*s - 1, ""},
		{"once for all gaps", both, work(11*s, 12*s, 13*s, s), []string{"idle of 10s after 10s"}, 13 * s, "idle_needed=14s"},
		{"a return before the total", timeout.Config{Total: 60 * s}, work(60*s - 1), nil, 60*s - 1, ""},
		{"a return at the total", timeout.Config{Total: 60 * s}, work(60 * s), []string{"total of 60s after 1m0s"}, 60 * s, "total_needed=1m1s"},
		{"a total, once", timeout.Config{Total: 60 * s}, work(100*s, 100*s), []string{"total of 60s after 1m0s"}, 100 * s, "total_needed=3m21s"},
		{"both", both, work(9*s, 9*s, 9*s, 9*s, 9*s, 9*s, 9*s, 30*s), []string{"total of 60s after 1m0s", "idle of 10s after 1m13s"}, 30 * s, "idle_needed=31s total_needed=1m34s"},
		{"the other way round", both, work(20*s, 50*s), []string{"idle of 10s after 10s", "total of 60s after 1m0s"}, 50 * s, "idle_needed=51s total_needed=1m11s"},
		{"both at once", timeout.Config{Idle: 10 * s, Total: 10 * s}, work(20 * s), []string{"total of 10s after 10s", "idle of 10s after 10s"}, 20 * s, "idle_needed=21s total_needed=21s"},
		{"below a second", timeout.Config{Idle: 50 * time.Millisecond}, work(100 * time.Millisecond), []string{"idle of 0.05s after 50ms"}, 100 * time.Millisecond, "idle_needed=101ms"},
		{"a hold in time", both, func(ctx context.Context) {
			time.Sleep(10*s - 1)
			release := heartbeat.Hold(ctx)
			time.Sleep(30 * s)
			release()
			time.Sleep(10*s - 1)
		}, nil, 10*s - 1, ""},
		{"a hold at the limit", both, func(ctx context.Context) {
			time.Sleep(10 * s)
			release := heartbeat.Hold(ctx)
			time.Sleep(30 * s)
			release()
			time.Sleep(11 * s)
		}, []string{"idle of 10s after 10s"}, 11 * s, "idle_needed=12s"},
		{"no limits", timeout.Config{}, work(time.Hour), nil, time.Hour, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var o observer
				value, err := timeout.Do(t.Context(), func(ctx context.Context) (int, error) {
					if d, ok := ctx.Deadline(); ok {
						t.Errorf("has the deadline %v", d)
					}
					tc.fn(ctx)
					if ctx.Err() != nil {
						t.Error(context.Cause(ctx))
					}
					return 7, errTool
				}, tc.limits, timeout.WithName("scan"), timeout.WithObserveOnly(), o.options(), o.logger())
				if err != errTool || value != 7 {
					t.Errorf("%v, value %d", err, value)
				}
				o.want(t, replaceSeconds(tc.want)...)
				synctest.Wait() // for the line of what is close to the limit
				f, log := o.finished, o.log.String()
				if f.LongestGap != tc.gap || f.Err != errTool || f.State != timeout.StateEnded || !f.ObserveOnly || (f.Observed != nil) != (len(tc.want) > 0) {
					t.Errorf("%+v", f)
				}
				if n := strings.Count(log, `level=WARN msg="tool would have been stopped: its limits are only observed" tool=scan error.message=`); n != len(tc.want) {
					t.Errorf("%d lines, want %d:\n%s", n, len(tc.want), log)
				}
				end := strings.Contains(log, `level=WARN msg="tool that would have been stopped has ended" tool=scan observed.message=`)
				if end != (len(tc.want) > 0) || !strings.Contains(log, tc.needed+"\n") && end || strings.Contains(log, "msg=\"tool timed out") {
					t.Errorf("the log has no %s:\n%s", tc.needed, log)
				}
				if end && !strings.Contains(log, fmt.Sprintf("longest_gap=%v error=\"tool failed\"", tc.gap.Round(time.Millisecond))) {
					t.Errorf("the log has not the gap of %v:\n%s", tc.gap, log)
				}
			})
		})
	}
}

// replaceSeconds writes a limit as a Duration does.
func replaceSeconds(in []string) (out []string) {
	for _, s := range in {
		out = append(out, strings.NewReplacer("of 60s", "of 1m0s", "of 0.05s", "of 50ms").Replace(s))
	}
	return out
}

// The first that would have stopped it is in the snapshots, as it would have been returned,
// with the stack in the hook.
func TestObservedError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen timeout.Snapshot
		var live *timeout.Error
		enforced := timeout.Run(t.Context(), func(ctx context.Context) error { heartbeat.BeatWith(ctx, "file 1"); <-ctx.Done(); return nil },
			timeout.Config{Idle: time.Second, Total: time.Minute}, timeout.WithName("scan"))
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			heartbeat.BeatWith(ctx, "file 1")
			time.Sleep(time.Hour)
			live = timeout.FromContext(ctx).Snapshot().Observed
			return nil
		}, timeout.Config{Idle: time.Second, Total: time.Minute}, timeout.WithName("scan"), timeout.WithObserveOnly(), timeout.WithHooks(timeout.Hooks{
			Exceeded: func(_ context.Context, s timeout.Snapshot) {
				if seen.Err == nil {
					seen = s
				}
			},
		}))
		want := stopped(t, enforced)
		if err != nil || live == nil {
			t.Fatal(err, live)
		}
		for _, got := range []error{seen.Err, live} {
			sameOutcome(t, got, want)
		}
		if !bytes.Contains(seen.Stack, []byte("time.Sleep")) || !bytes.Equal(stopped(t, seen.Err).Stack, seen.Stack) {
			t.Errorf("stack:\n%s", seen.Stack)
		}
	})
}

// SPEC 3.16 holds: a stall is nobody's gap, also after the limit has been exceeded.
func TestObserveOnlyStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var o observer
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			timeout.DelayTimer(ctx, time.Minute)
			time.Sleep(30 * time.Second)
			heart(ctx) // late, as the timer is
			timeout.DelayTimer(ctx, 0)
			synctest.Wait()
			time.Sleep(15 * time.Second) // exceeds it
			heart(ctx)
			timeout.DelayTimer(ctx, time.Hour)
			time.Sleep(30 * time.Minute)
			heart(ctx)
			return nil
		}, timeout.Config{Idle: 10 * time.Second}, timeout.WithObserveOnly(), o.options())
		if f := o.finished; err != nil || f.Stalls != 2 || f.LongestGap != 15*time.Second {
			t.Errorf("%v, %+v", err, f)
		}
		o.want(t, "idle of 10s after 40s")
	})
}

// A tool that is silent for years costs a timer now and then, not one per idle limit.
func TestObserveOnlyDoesNotPoll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(context.Context) error { time.Sleep(10 * 365 * 24 * time.Hour); return nil },
			timeout.Config{Idle: time.Nanosecond}, timeout.WithObserveOnly())
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 3.16: a stall after the idle limit was exceeded is no gap of the tool's, and does not take
// away the gap for which it would have been stopped.
func TestObservedGapOutlastsAStall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const idle = 10 * time.Second
		var last timeout.Snapshot
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(idle + time.Second)
			timeout.DelayTimer(ctx, time.Hour)
			time.Sleep(time.Minute)
			return nil
		}, timeout.Config{Idle: idle}, timeout.WithObserveOnly(),
			timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { last = s }}))
		if err != nil || last.Observed == nil || last.Stalls != 1 || last.LongestGap < idle {
			t.Errorf("%v, observed %v, %d stalls, longest gap %v", err, last.Observed, last.Stalls, last.LongestGap)
		}
	})
}
