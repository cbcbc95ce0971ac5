package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 18.1: what the deadline of the environment bounds. That it is a caller's deadline in everything else is a rule of
// TestSimulation.
func TestInheritedBounds(t *testing.T) {
	const left = 5 * time.Second
	errEnv := errors.New("of the environment")
	// elapsed is how long a function runs that waits for its context, and which limit it is said to have had.
	elapsed := func(ctx context.Context, opts ...timeout.Option) (took, limit time.Duration, err error) {
		begun := time.Now()
		err = timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, opts...)
		var stop *timeout.Error
		if errors.As(err, &stop) {
			limit = stop.Limit
		}
		return time.Since(begun), limit, err
	}
	limits := timeout.Config{Total: time.Minute}
	for _, tc := range []struct {
		name     string
		do       func(ctx context.Context) (took, limit time.Duration, err error)
		want     time.Duration
		inherits bool
	}{
		{"a longer total", func(ctx context.Context) (time.Duration, time.Duration, error) { return elapsed(ctx, limits) }, left, true},
		{"no total", func(ctx context.Context) (time.Duration, time.Duration, error) { return elapsed(ctx, timeout.Config{}) }, left, true},
		{"a shorter total", func(ctx context.Context) (time.Duration, time.Duration, error) {
			return elapsed(ctx, timeout.Config{Total: left - 1})
		}, left - 1, false},
		{"an earlier deadline", func(ctx context.Context) (time.Duration, time.Duration, error) {
			ctx, cancel := context.WithTimeout(ctx, left-1)
			defer cancel()
			return elapsed(ctx, limits)
		}, left - 1, false},
		{"observed", func(ctx context.Context) (time.Duration, time.Duration, error) {
			return elapsed(ctx, limits, timeout.WithObserveOnly())
		}, left, true},
		{"left out", func(ctx context.Context) (time.Duration, time.Duration, error) {
			return elapsed(ctx, limits, timeout.WithoutInherited())
		}, time.Minute, false},
		{"inside of one that leaves it out", func(ctx context.Context) (took, limit time.Duration, err error) {
			err = timeout.Run(ctx, func(ctx context.Context) error {
				took, limit, err = elapsed(ctx, limits)
				return err
			}, timeout.Config{}, timeout.WithoutInherited())
			return took, limit, err
		}, time.Minute, false},
		{"inside of one that has it", func(ctx context.Context) (took, limit time.Duration, err error) {
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				took, limit, err = elapsed(ctx, limits, timeout.WithoutInherited())
				return err
			}, timeout.Config{})
			return took, limit, err
		}, left, true},
		{"inside of one that mutes it", func(ctx context.Context) (took, limit time.Duration, err error) {
			err = timeout.Run(ctx, func(ctx context.Context) error {
				took, limit, err = elapsed(pulse.Mute(ctx), limits)
				return err
			}, timeout.Config{}, timeout.WithoutInherited())
			return took, limit, err
		}, time.Minute, false},
		{"detached from one that has it", func(ctx context.Context) (took, limit time.Duration, err error) {
			done := make(chan struct{})
			_ = timeout.Run(ctx, func(ctx context.Context) error {
				go func() {
					defer close(done)
					took, limit, err = elapsed(context.WithoutCancel(pulse.Mute(ctx)), limits)
				}()
				return nil
			}, timeout.Config{})
			<-done
			return took, limit, err
		}, left, true},
		{"on a clock of its own", func(ctx context.Context) (took, limit time.Duration, err error) {
			mock := clock.NewMock()
			mock.Set(time.Now()) // a time before the process began does not count in any case
			done := make(chan struct{})
			go func() {
				defer close(done)
				took, limit, err = elapsed(ctx, limits, timeout.WithClock(mock))
			}()
			time.Sleep(2 * left) // the bubble's, which the execution does not read
			mock.Add(time.Minute)
			<-done
			return limit, limit, err
		}, time.Minute, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer timeout.SetInherited(time.Now().Add(left), errEnv)()
				took, limit, err := tc.do(context.Background())
				if took != tc.want || limit != tc.want || !errors.Is(err, timeout.ErrTotal) || errors.Is(err, errEnv) != tc.inherits {
					t.Errorf("stopped after %v by a limit of %v with %+v, want %v, of the environment: %v", took, limit, err, tc.want, tc.inherits)
				}
			})
		})
	}
}

// SPEC 18.1, 3.21: what is left counts it, in an execution and outside.
func TestInheritedRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		undo := timeout.SetInherited(time.Now().Add(5*time.Second), errors.New("of the environment"))
		defer undo()
		check := func(when string, ctx context.Context, want time.Duration) {
			t.Helper()
			if left, ok := timeout.Remaining(ctx); left != want || !ok {
				t.Errorf("%s %v is left, %v, want %v", when, left, ok, want)
			}
		}
		check("outside", t.Context(), 5*time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check("under a shorter deadline", short, time.Second)
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(time.Second)
			check("inside", ctx, 4*time.Second)
			return nil
		}, timeout.Config{Total: time.Minute})
		_ = timeout.Run(t.Context(), func(ctx context.Context) error {
			check("left out,", ctx, time.Minute)
			return nil
		}, timeout.Config{Total: time.Minute}, timeout.WithoutInherited())
		time.Sleep(5 * time.Second)
		check("afterwards", t.Context(), 0)
		if err := timeout.Run(t.Context(), func(context.Context) error { t.Error("it was called"); return nil }); !errors.Is(err, timeout.ErrTotal) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

const inheritedCase = "TIMEOUT_TEST_INHERITED"

// SPEC 18.1: the variable is read once. What is taken is logged once, and so is a value that cannot be read, which is
// ignored. In a bubble it is not even read.
func TestInheritedFromEnvironment(t *testing.T) {
	if os.Getenv(inheritedCase) != "" {
		printInherited(t)
		return
	}
	t.Parallel()
	const nothing = "bubble false\nno deadline\nno deadline\n"
	refused := func(value string) string {
		return nothing + fmt.Sprintf("level=WARN msg=\"the deadline of the environment is ignored\" error.message=%q\n",
			fmt.Sprintf("timeout: TOOL_DEADLINE=%q: want an instant as in RFC 3339, such as 2006-01-02T15:04:05.000Z", value))
	}
	const taken = `level=INFO msg="the total is cut to the deadline of the environment" TOOL_DEADLINE=`
	for _, tc := range []struct{ name, value, want string }{
		{"none", "-", nothing},
		{"milliseconds", "2100-01-02T03:04:05.678Z", "bubble false\n2100-01-02T03:04:05.678Z\n2100-01-02T03:04:05.678Z\n" + taken + "2100-01-02T03:04:05.678Z\n"},
		{"another zone", "2100-01-02T03:04:05+01:00", "bubble false\n2100-01-02T02:04:05.000Z\n2100-01-02T02:04:05.000Z\n" + taken + "2100-01-02T03:04:05+01:00\n"},
		{"long past", "1999-01-02T03:04:05Z", "bubble false\ntotal\ntotal\n" + taken + "1999-01-02T03:04:05Z\n"},
		{"no instant", "soon", refused("soon")},
		{"a duration", "90s", refused("90s")},
		{"empty", "", refused("")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestInheritedFromEnvironment$", "-test.count=1")
			cmd.Env = append(cmd.Environ(), inheritedCase+"=1", "GORACE=atexit_sleep_ms=0")
			if tc.value != "-" {
				cmd.Env = append(cmd.Env, "TOOL_DEADLINE="+tc.value)
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got, _, _ := strings.Cut(string(out), "PASS\n"); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

func printInherited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ok := timeout.Remaining(t.Context())
		fmt.Println("bubble", ok)
	})
	var log bytes.Buffer
	logger := timeout.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "left" {
				return slog.Attr{}
			}
			return a
		},
	})))
	for range 2 {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			if at, ok := ctx.Deadline(); ok {
				// The wall clock may have been set since the process began.
				fmt.Println(at.Round(time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z07:00"))
			} else {
				fmt.Println("no deadline")
			}
			return nil
		}, timeout.Config{}, logger)
		var stop *timeout.Error
		if errors.As(err, &stop) {
			fmt.Println(stop.Kind)
		}
		t.Setenv("TOOL_DEADLINE", "2001-01-01T00:00:00Z") // it is read once
	}
	for _, line := range strings.SplitAfter(log.String(), "\n") {
		if !strings.Contains(line, "was not started") {
			fmt.Print(line)
		}
	}
}
