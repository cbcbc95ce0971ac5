package timeout_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 3.18: what would have stopped the tool is logged, with its stack, and at the end the limits that would have
// sufficed. The simulation judges when that is, and that nothing is cancelled.
func TestObserveOnlyLog(t *testing.T) {
	const s = time.Second
	both := timeout.Config{Idle: 10 * s, Total: 60 * s}
	for _, tc := range []struct {
		name   string
		limits timeout.Config
		gaps   []time.Duration
		times  int    // how often it would have been stopped
		needed string // in the log at the end, with the longest gap
	}{
		{"in time", both, []time.Duration{10*s - 1, 10*s - 1}, 0, ""},
		{"at the idle limit", both, []time.Duration{10 * s, s}, 1, `longest_gap=10s error="tool failed" idle_needed=11s`},
		{"once for all gaps", both, []time.Duration{11 * s, 12 * s, 13 * s, s}, 1, `longest_gap=13s error="tool failed" idle_needed=14s`},
		{"the total", timeout.Config{Total: 60 * s}, []time.Duration{100 * s, 100 * s}, 1, `longest_gap=1m40s error="tool failed" total_needed=3m21s`},
		{"both", both, []time.Duration{20 * s, 50 * s}, 2, `longest_gap=50s error="tool failed" idle_needed=51s total_needed=1m11s`},
		{"below a second", timeout.Config{Idle: 50 * time.Millisecond}, []time.Duration{100 * time.Millisecond}, 1, `longest_gap=100ms error="tool failed" idle_needed=101ms`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log bytes.Buffer
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					for i, d := range tc.gaps {
						if i > 0 {
							heartbeat.Beat(ctx)
						}
						time.Sleep(d)
					}
					return errTool
				}, tc.limits, timeout.WithName("scan"), timeout.WithObserveOnly(), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				synctest.Wait() // for the line of what is close to the limit
				text := log.String()
				if n := strings.Count(text, `level=WARN msg="tool would have been stopped: its limits are only observed" tool=scan error.message=`); err != errTool || n != tc.times {
					t.Errorf("%v, %d lines, want %d:\n%s", err, n, tc.times, text)
				}
				if strings.Contains(text, "error.kind=idle") && !strings.Contains(text, "time.Sleep") {
					t.Errorf("the log has no stack:\n%s", text)
				}
				end := strings.Contains(text, `level=WARN msg="tool that would have been stopped has ended" tool=scan observed.message=`)
				if end != (tc.times > 0) || !strings.Contains(text, tc.needed) || strings.Contains(text, `msg="tool timed out`) {
					t.Errorf("the log has no %s:\n%s", tc.needed, text)
				}
			})
		})
	}
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
		if err != nil || last.Observed == nil || last.Stalls != 1 || last.LongestGap < idle || last.LongestGap > idle+time.Second {
			t.Errorf("%v, observed %v, %d stalls, longest gap %v", err, last.Observed, last.Stalls, last.LongestGap)
		}
	})
}
