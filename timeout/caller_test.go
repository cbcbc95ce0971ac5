package timeout_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

type callerKey struct{}

var errCaller = errors.New("the caller has had enough")

// callers are the shapes of a caller's context: they take different ways through the
// engine, and must not differ in what is seen.
var callers = map[string]func(context.Context) (context.Context, context.CancelCauseFunc){
	"plain":    context.WithCancelCause,
	"deadline": withFarDeadline,
	"outer execution": func(ctx context.Context) (context.Context, context.CancelCauseFunc) {
		got := make(chan context.Context)
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			_ = timeout.Run(ctx, func(ctx context.Context) error { got <- ctx; <-ctx.Done(); return nil }, timeout.Config{Total: 1000 * time.Hour})
		}()
		return <-got, cancel
	},
}

func withFarDeadline(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, stop := context.WithTimeout(ctx, time.Hour)
	return ctx, func(err error) { cancel(err); stop() }
}

// SPEC 3.11.
func TestAbort(t *testing.T) {
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := caller(context.WithValue(t.Context(), callerKey{}, "value"))
				time.AfterFunc(3*time.Second, func() { cancel(errCaller) })
				start := time.Now()
				got, err := timeout.Do(ctx, func(ctx context.Context) (string, error) {
					if ctx.Value(callerKey{}) != "value" {
						t.Error("the caller's values are not in the function's context")
					}
					time.Sleep(time.Second)
					heartbeat.Beat(ctx)
					<-ctx.Done()
					if context.Cause(ctx) != errCaller {
						t.Errorf("cause is %v, want the caller's", context.Cause(ctx))
					}
					return "partial", errTool
				}, timeout.Config{Total: 2 * time.Hour, Idle: time.Minute}, timeout.WithName("search"))
				sameOutcome(t, err, &timeout.Error{
					Kind: timeout.KindAborted, Tool: "search", Elapsed: 3 * time.Second, SinceBeat: 2 * time.Second,
					LongestGap: 2 * time.Second, Beats: 1, Err: errTool, Cause: errCaller,
				})
				if time.Since(start) != 3*time.Second || got != "partial" {
					t.Errorf("%q after %v", got, time.Since(start))
				}
				for _, target := range []error{timeout.ErrAborted, context.Canceled, errCaller, errTool} {
					if !errors.Is(err, target) {
						t.Errorf("errors.Is(err, %v) is false", target)
					}
				}
				for _, target := range []error{timeout.ErrIdle, timeout.ErrTotal, context.DeadlineExceeded} {
					if errors.Is(err, target) {
						t.Errorf("errors.Is(err, %v) is true", target)
					}
				}
				if timeout.ExitCode(err) != 130 {
					t.Errorf("exit code %d", timeout.ExitCode(err))
				}
			})
		})
	}
}

// SPEC 3.11: under a context that is over, the function is never started.
func TestNeverStarted(t *testing.T) {
	canceled, cancel := context.WithCancelCause(context.Background())
	cancel(errCaller)
	expired, cancelExpired := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelExpired()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		is   []error
		code int
		text string
	}{
		{"cancelled", canceled, []error{timeout.ErrAborted, context.Canceled, errCaller}, 130, "Tool was aborted: the caller has had enough"},
		{"expired", expired, []error{timeout.ErrTotal, context.DeadlineExceeded}, 124, "Tool exceeded wall-clock limit of 0s."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hooks := timeout.Hooks{
				Started:  func(context.Context, timeout.Snapshot) { t.Error("hook Started") },
				Finished: func(context.Context, timeout.Snapshot) { t.Error("hook Finished") },
			}
			var log bytes.Buffer
			err := timeout.Run(tc.ctx, func(context.Context) error { t.Error("started"); return nil },
				timeout.WithName("scan"), timeout.WithHooks(hooks), timeout.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, `level=INFO msg="tool was not started" tool=scan error.`) {
				t.Errorf("log:\n%s", line)
			}
			for _, target := range tc.is {
				if !errors.Is(err, target) {
					t.Errorf("errors.Is(%v, %v) is false", err, target)
				}
			}
			if timeout.ExitCode(err) != tc.code || err.Error() != tc.text {
				t.Errorf("%v, exit code %d, want %s, %d", err, timeout.ExitCode(err), tc.text, tc.code)
			}
		})
	}
}

// lateDeadline is a context whose deadline has passed while its timer is late.
type lateDeadline struct{ context.Context }

func (lateDeadline) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestNeverStartedByALateTimer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(lateDeadline{t.Context()}, func(context.Context) error { t.Error("started"); return nil })
		if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Error() != "Tool exceeded wall-clock limit of 0s." {
			t.Errorf("%v", err)
		}
	})
}

// SPEC 3.12: the caller's deadline is a smaller total.
func TestCallersDeadline(t *testing.T) {
	for _, tc := range []struct {
		name            string
		config          timeout.Config
		deadline, total time.Duration
	}{
		{"before the total", timeout.Config{Total: time.Minute}, 20 * time.Second, 20 * time.Second},
		{"a nanosecond before the total", timeout.Config{Total: time.Minute}, time.Minute - 1, time.Minute - 1},
		{"at the total", timeout.Config{Total: time.Minute}, time.Minute, time.Minute},
		{"after the total", timeout.Config{Total: time.Minute}, time.Hour, time.Minute},
		{"without a total", timeout.Config{}, 90250 * time.Millisecond, 90250 * time.Millisecond},
		{"below the idle limit", timeout.Config{Total: time.Hour, Idle: time.Minute}, time.Second, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), tc.deadline, errCaller)
				defer cancel()
				want := time.Now().Add(tc.total)
				var cause error
				err := timeout.Run(ctx, func(ctx context.Context) error {
					if d, ok := ctx.Deadline(); !ok || !d.Equal(want) {
						t.Errorf("Deadline is %v, %v, want %v", d, ok, want)
					}
					<-ctx.Done()
					cause = context.Cause(ctx)
					return ctx.Err()
				}, tc.config)
				if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Limit != tc.total || e.Elapsed != tc.total {
					t.Errorf("%v, limit %v, elapsed %v, want total of %v", e.Kind, e.Limit, e.Elapsed, tc.total)
				}
				if !errors.Is(cause, timeout.ErrTotal) {
					t.Errorf("cause is %v, want the typed error (SPEC 3.8)", cause)
				}
				if timeout.ExitCode(err) != 124 {
					t.Errorf("exit code %d", timeout.ExitCode(err))
				}
			})
		})
	}
}

// deadlineless is a context that expires without having said so.
type deadlineless struct{ context.Context }

func (deadlineless) Deadline() (time.Time, bool) { return time.Time{}, false }

func TestCallersDeadlineUnannounced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := timeout.Run(deadlineless{ctx}, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{})
		if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Limit != 3*time.Second {
			t.Errorf("%v of %v", e.Kind, e.Limit)
		}
	})
}

// SPEC 3.4, 6.9: the first cause stays.
func TestFirstCauseWins(t *testing.T) {
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := caller(t.Context())
				time.AfterFunc(time.Second+time.Nanosecond, func() { cancel(errCaller) })
				err := timeout.Run(ctx, func(ctx context.Context) error {
					time.Sleep(2 * time.Second)
					if !errors.Is(context.Cause(ctx), timeout.ErrIdle) {
						t.Errorf("cause is %v", context.Cause(ctx))
					}
					return nil
				}, timeout.Config{Idle: time.Second})
				if e := stopped(t, err); e.Kind != timeout.KindIdle || e.Cause != nil {
					t.Errorf("timeout, then abort: %v, cause %v", e.Kind, e.Cause)
				}

				ctx, cancel = caller(t.Context())
				time.AfterFunc(time.Second-time.Nanosecond, func() { cancel(errCaller) })
				err = timeout.Run(ctx, func(context.Context) error {
					time.Sleep(2 * time.Second)
					return nil
				}, timeout.Config{Idle: time.Second})
				if e := stopped(t, err); e.Kind != timeout.KindAborted {
					t.Errorf("abort, then timeout: %v", e.Kind)
				}
			})
		})
	}
}

// Real threads, the same instant: whatever wins, everybody says the same.
func TestOneOutcomeUnderRaces(t *testing.T) {
	for range 2000 {
		ctx, cancel := context.WithCancel(context.Background())
		limit := 50 * time.Microsecond
		time.AfterFunc(limit, cancel)
		var finished error
		calls := 0
		hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished = s.Err; calls++ }}
		var inner context.Context
		err := timeout.Run(ctx, func(ctx context.Context) error {
			inner = ctx
			select {
			case <-ctx.Done():
			case <-time.After(limit):
			}
			return errTool
		}, timeout.Config{Total: limit, Idle: limit}, timeout.WithHooks(hooks))
		if inner == nil && errors.Is(err, timeout.ErrAborted) {
			continue // cancelled before Run had looked
		}
		if calls != 1 || finished != err {
			t.Fatalf("hook called %d times, with %v; Run gave %v", calls, finished, err)
		}
		var e *timeout.Error
		cause := context.Cause(inner)
		switch {
		case err == errTool:
			if errors.Is(cause, context.DeadlineExceeded) || cause == context.Canceled {
				t.Fatalf("finished, with cause %v", cause)
			}
		case errors.As(err, &e) && e.Kind == timeout.KindAborted:
			if cause != context.Canceled {
				t.Fatalf("aborted, with cause %v", cause)
			}
		case errors.As(err, &e):
			if !errors.Is(cause, context.DeadlineExceeded) || cause.Error() != e.Error() {
				t.Fatalf("%v, with cause %v", err, cause)
			}
		default:
			t.Fatal(err)
		}
	}
}

// A limit that fires while the caller's cancel is on its way through a detached
// context counts, and so does the caller's in a plain one: neither hangs.
func TestAbortOfADeafFunction(t *testing.T) {
	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ctx, cancel := caller(t.Context())
				time.AfterFunc(time.Second, func() { cancel(nil) })
				start := time.Now()
				release := make(chan struct{})
				err := timeout.Run(ctx, func(context.Context) error { <-release; return nil }, timeout.Config{Grace: 2 * time.Second})
				if e := stopped(t, err); e.Kind != timeout.KindAborted || !e.Abandoned || time.Since(start) != 3*time.Second {
					t.Errorf("%v, abandoned %v, after %v", e.Kind, e.Abandoned, time.Since(start))
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}
