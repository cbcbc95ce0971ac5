package timeout_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// The log names what happened, at a level that fits, and is silent about success.
func TestLogger(t *testing.T) {
	idle := timeout.Config{Idle: 10 * time.Second}
	for _, tc := range []struct {
		name   string
		config timeout.Config
		fn     func(ctx context.Context, cancel func()) error
		want   []string
	}{
		{"success", idle, func(context.Context, func()) error { return nil }, nil},
		{"the tool's own error", idle, func(context.Context, func()) error { return errTool }, nil},
		{"idle", idle, func(ctx context.Context, _ func()) error { <-ctx.Done(); return errTool }, []string{
			`level=WARN msg="tool is close to its idle limit"`, `level=WARN msg="tool timed out"`, `error.kind=idle`, `error.error="tool failed"`, `stack=`,
		}},
		{"total", timeout.Config{Total: time.Second}, func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }, []string{
			`level=WARN msg="tool timed out"`, `error.kind=total`, `error.longest_gap=1s`,
		}},
		{"abort", idle, func(ctx context.Context, cancel func()) error { cancel(); <-ctx.Done(); return nil }, []string{
			`level=INFO msg="tool was aborted"`, `error.kind=aborted`,
		}},
		{"abandoned", timeout.Config{Total: time.Second}, func(context.Context, func()) error { time.Sleep(time.Minute); return nil }, []string{
			`level=ERROR msg="tool was abandoned: it did not return when its context was cancelled"`, `error.abandoned=true`, `stack=`,
			`level=WARN msg="abandoned tool returned"`, `execution.elapsed=1m0s`,
		}},
		{"late panic", timeout.Config{Total: time.Second}, func(context.Context, func()) error { time.Sleep(time.Minute); panic("late") }, []string{
			`level=ERROR msg="abandoned tool panicked" tool=scan error="panic: late"`,
		}},
		{"panic", idle, func(context.Context, func()) error { panic("boom") }, []string{`level=ERROR msg="tool panicked" tool=scan error="panic: boom"`}},
		{"corrected limits", timeout.Config{Total: -1, Idle: -1}, func(context.Context, func()) error { return nil }, []string{
			`level=WARN msg="total timeout -1ns is negative; using 0 (no total limit)"`, `level=WARN msg="idle timeout -1ns is negative; using 0 (no idle check)"`,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var buf bytes.Buffer
				ctx, cancel := context.WithCancel(t.Context())
				_ = timeout.Run(ctx, func(ctx context.Context) error { return tc.fn(ctx, cancel) }, tc.config,
					timeout.WithName("scan"), timeout.WithRecover(), timeout.WithLogger(slog.New(slog.NewTextHandler(&buf, nil))))
				time.Sleep(time.Hour)
				synctest.Wait()
				if len(tc.want) == 0 && buf.Len() > 0 {
					t.Errorf("logged: %s", buf.String())
				}
				for _, want := range tc.want {
					if !strings.Contains(buf.String(), want) || !strings.Contains(buf.String(), "tool=scan") {
						t.Errorf("log has no %s:\n%s", want, buf.String())
					}
				}
				cancel()
			})
		})
	}
}

// The goroutine of a named tool, and those that it starts, can be found in a profile.
func TestGoroutineLabels(t *testing.T) {
	caller := pprof.WithLabels(context.Background(), pprof.Labels("request", "7"))
	err := timeout.Run(caller, func(ctx context.Context) error {
		if v, ok := pprof.Label(ctx, "tool"); !ok || v != "scan" {
			t.Errorf("label in the context: %q", v)
		}
		if v, _ := pprof.Label(ctx, "request"); v != "7" {
			t.Error("the caller's labels are lost")
		}
		done := make(chan struct{})
		defer close(done)
		go func() { <-done }()
		var buf bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&buf, 1); err != nil {
			return err
		}
		if n := strings.Count(buf.String(), `"tool":"scan"`); n != 2 {
			t.Errorf("%d labelled stacks, want the function's and its child's:\n%s", n, buf.String())
		}
		return nil
	}, timeout.WithName("scan"))
	if err != nil {
		t.Error(err)
	}
}

// A run with Hooks of which none is set costs what it costs without the option.
func TestNoHooks(t *testing.T) {
	allocations := func(opts ...timeout.Option) float64 {
		return testing.AllocsPerRun(100, func() {
			_ = timeout.Run(context.Background(), func(context.Context) error { return nil }, opts...)
		})
	}
	limits := timeout.Config{Total: time.Minute}
	without := allocations(limits)
	if with := allocations(limits, timeout.WithHooks(timeout.Hooks{})); with > without+0.5 {
		t.Errorf("%v allocations, and %v without the option", with, without)
	}
}
