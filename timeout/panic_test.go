package timeout_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

//go:noinline
func blowsUp(v any) { panic(v) }

func recovered(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// SPEC 3.13.
func TestPanicReachesTheCaller(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sleep time.Duration // 2s is after the limit, within the grace
	}{{"in time", 0}, {"after the limit", 2 * time.Second}} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				finished := 0
				v := recovered(func() {
					_ = timeout.Run(t.Context(), func(context.Context) error {
						time.Sleep(tc.sleep)
						blowsUp(io.ErrClosedPipe)
						return nil
					}, timeout.Config{Total: time.Second}, timeout.WithHooks(timeout.Hooks{
						Finished: func(context.Context, timeout.Snapshot) { finished++ },
					}))
				})
				err, ok := v.(error)
				var p *timeout.PanicError
				if !ok || !errors.As(err, &p) || p.Value != io.ErrClosedPipe || !errors.Is(err, io.ErrClosedPipe) {
					t.Fatalf("recovered %v (%T)", v, v)
				}
				if !strings.Contains(string(p.Stack), "blowsUp") || !strings.Contains(err.Error(), "blowsUp") ||
					!strings.HasPrefix(err.Error(), io.ErrClosedPipe.Error()) {
					t.Errorf("a crash would not show value and stack: %v", err)
				}
				if finished != 1 {
					t.Errorf("hook Finished called %d times", finished)
				}
			})
		})
	}
}

func TestWithRecover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, err := timeout.Do(t.Context(), func(context.Context) (int, error) {
			blowsUp("boom")
			return 1, nil
		}, timeout.WithRecover())
		var p *timeout.PanicError
		if got != 0 || !errors.As(err, &p) || p.Value != "boom" || err.Error() != "panic: boom" || timeout.ExitCode(err) != 1 {
			t.Errorf("%v, %v", got, err)
		}
		_, err = timeout.Do(t.Context(), func(context.Context) (int, error) {
			time.Sleep(2 * time.Second)
			blowsUp("boom")
			return 1, nil
		}, timeout.WithRecover(), timeout.Config{Total: time.Second})
		if e := stopped(t, err); e.Kind != timeout.Total || !errors.As(err, &p) || p.Value != "boom" {
			t.Errorf("%v", err)
		}
		// panic(nil) is a panic too.
		err = timeout.Run(t.Context(), func(context.Context) error { blowsUp(nil); return nil }, timeout.WithRecover())
		if !errors.As(err, &p) || !errors.As(err, new(*runtime.PanicNilError)) {
			t.Errorf("%v", err)
		}
	})
}

// SPEC 3.13.
func TestGoexit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		if !errors.Is(err, timeout.ErrGoexit) || timeout.ExitCode(err) != 1 {
			t.Errorf("%v", err)
		}
		err = timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); runtime.Goexit(); return nil }, timeout.Config{Idle: 1})
		if !errors.Is(err, timeout.ErrIdle) || !errors.Is(err, timeout.ErrGoexit) {
			t.Errorf("%v", err)
		}
	})
}
