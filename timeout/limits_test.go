package timeout_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

var errTool = errors.New("tool failed")

// bubble runs f with a fake clock; it fails the test if f leaves a goroutine behind. What
// other tests have left to run on a busy machine would keep f's stacks from being taken.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	settled(t, 150)
	synctest.Test(t, f)
}

// stopped returns err as the outcome of an execution that was stopped.
func stopped(t *testing.T, err error) *timeout.Error {
	t.Helper()
	var e *timeout.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want a *timeout.Error", err, err)
	}
	return e
}

// sameOutcome compares but for the stack, which is another test's.
func sameOutcome(t *testing.T, got error, want *timeout.Error) {
	t.Helper()
	e := stopped(t, got)
	if diff := cmp.Diff(*want, *e, cmpopts.IgnoreFields(timeout.Error{}, "Stack", "Limits"), cmpopts.EquateErrors()); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// SPEC 3.1, 3.2, 3.5, 3.7: one nanosecond decides.
func TestBoundary(t *testing.T) {
	const limit = 5 * time.Second
	for _, tc := range []struct {
		name   string
		config timeout.Config
		kind   timeout.Kind
		sleep  time.Duration
	}{
		{"idle, a nanosecond before", timeout.Config{Idle: limit}, 0, limit - 1},
		{"idle, at the limit", timeout.Config{Idle: limit}, timeout.KindIdle, limit},
		{"idle, a nanosecond after", timeout.Config{Idle: limit}, timeout.KindIdle, limit + 1},
		{"total, a nanosecond before", timeout.Config{Total: limit}, 0, limit - 1},
		{"total, at the limit", timeout.Config{Total: limit}, timeout.KindTotal, limit},
		{"total, a nanosecond after", timeout.Config{Total: limit}, timeout.KindTotal, limit + 1},
		{"both at once is total", timeout.Config{Total: limit, Idle: limit}, timeout.KindTotal, limit},
		{"both, a nanosecond before", timeout.Config{Total: limit, Idle: limit}, 0, limit - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := timeout.Run(t.Context(), func(context.Context) error {
					time.Sleep(tc.sleep) // deaf, so that the return alone is judged
					return errTool
				}, tc.config)
				if tc.kind == 0 {
					if err != errTool {
						t.Fatalf("error is %v, want the function's own", err)
					}
					return
				}
				sameOutcome(t, err, &timeout.Error{
					Kind: tc.kind, Limit: limit, Elapsed: limit, SinceBeat: limit, LongestGap: limit, Err: errTool,
				})
			})
		})
	}
}

// SPEC 3.5, 3.8: the function sees the limit at its instant, with the typed cause.
func TestFiresAtTheLimit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config timeout.Config
		is     error
	}{
		{"idle", timeout.Config{Idle: 90250 * time.Millisecond}, timeout.ErrIdle},
		{"total", timeout.Config{Total: 90250 * time.Millisecond}, timeout.ErrTotal},
		{"one nanosecond", timeout.Config{Total: 1, Idle: 1}, timeout.ErrTotal},
		{"idle of one nanosecond", timeout.Config{Idle: 1}, timeout.ErrIdle},
		{"near the maximum", timeout.Config{Total: math.MaxInt64, Idle: 1000 * time.Hour}, timeout.ErrIdle},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				start := time.Now()
				var fired time.Duration
				var cause error
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					<-ctx.Done()
					fired, cause = time.Since(start), context.Cause(ctx)
					return ctx.Err()
				}, tc.config)
				want := tc.config.Idle
				if want == 0 {
					want = tc.config.Total
				}
				if fired != want {
					t.Errorf("fired after %v, want %v", fired, want)
				}
				if got := time.Since(start); got != want {
					t.Errorf("Run returned after %v: a function that answers costs no grace (SPEC 3.10)", got)
				}
				if !errors.Is(cause, tc.is) || !errors.Is(err, tc.is) {
					t.Errorf("cause %v, error %v: both want %v", cause, err, tc.is)
				}
			})
		})
	}
}

// SPEC 3.1: each beat renews the idle limit, and one nanosecond decides.
func TestBeatRenewsIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const idle = time.Second
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			for range 1000 {
				time.Sleep(idle - 1)
				heartbeat.Beat(ctx)
			}
			return ctx.Err()
		}, timeout.Config{Idle: idle})
		if err != nil {
			t.Fatal(err)
		}
		err = timeout.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(idle - 1)
			heartbeat.Beat(ctx)
			time.Sleep(idle)
			heartbeat.Beat(ctx) // too late, by the same comparison that the timer makes
			return nil
		}, timeout.Config{Idle: idle})
		sameOutcome(t, err, &timeout.Error{
			Kind: timeout.KindIdle, Limit: idle, Elapsed: 2*idle - 1, SinceBeat: idle, LongestGap: idle, Beats: 1,
		})
	})
}

// SPEC 3.6: the heartbeat does not move the total by a nanosecond.
func TestBeatsNeverExtendTotal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			for {
				heartbeat.Beat(ctx)
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(1300 * time.Millisecond):
				}
			}
		}, timeout.Config{Total: 90 * time.Second, Idle: 2 * time.Second})
		if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Beats != 70 || time.Since(start) != 90*time.Second {
			t.Errorf("%v after %v with %d beats, want total after 90s with 70", e.Kind, time.Since(start), e.Beats)
		}
	})
}

// SPEC 2.1: without limits only the caller bounds the execution.
func TestNoLimits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			if d, ok := ctx.Deadline(); ok {
				t.Errorf("Deadline is %v, want none", d)
			}
			time.Sleep(1000 * time.Hour)
			return ctx.Err()
		}, timeout.Config{})
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 3.14.
func TestDeadlineIsTheTotal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		want := time.Now().Add(time.Minute)
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(want) {
				t.Errorf("Deadline is %v, %v, want %v", d, ok, want)
			}
			return nil
		}, timeout.Config{Total: time.Minute, Idle: time.Second})
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 2.2, 2.3: Run enforces what Normalize says.
func TestRunNormalizes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, timeout.Config{Total: time.Second, Idle: time.Hour})
		if e := stopped(t, err); e.Kind != timeout.KindTotal || e.Elapsed != time.Second {
			t.Errorf("%v after %v", e.Kind, e.Elapsed)
		}
		err = timeout.Run(t.Context(), func(ctx context.Context) error {
			time.Sleep(time.Hour)
			return ctx.Err()
		}, timeout.Config{Total: -1, Idle: math.MinInt64, Grace: -5})
		if err != nil {
			t.Error(err)
		}
	})
}

// SPEC 3.7: a late result is kept beside the timeout.
func TestPartialResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, err := timeout.Do(t.Context(), func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "half of it", errTool
		}, timeout.Config{Idle: time.Second})
		if got != "half of it" || !errors.Is(err, timeout.ErrIdle) || !errors.Is(err, errTool) {
			t.Errorf("got %q, %v", got, err)
		}
		got, err = timeout.Do(t.Context(), func(context.Context) (string, error) { return "all", nil })
		if got != "all" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		got, err = timeout.Do(t.Context(), func(context.Context) (string, error) { return "some", errTool })
		if got != "some" || err != errTool {
			t.Errorf("got %q, %v, want the function's own error as it is", got, err)
		}
	})
}

// SPEC 3.15: the context goes on being safe, and ends as under context.WithTimeout.
func TestContextAfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ctx context.Context
		if err := timeout.Run(t.Context(), func(c context.Context) error { ctx = c; return nil }); err != nil {
			t.Fatal(err)
		}
		m := heartbeat.FromContext(ctx)
		before := m.Last()
		time.Sleep(time.Second)
		heartbeat.Beat(ctx)
		heartbeat.BeatWith(ctx, "late")
		heartbeat.Hold(ctx)()
		if m.Count() != 0 || !m.Last().Equal(before) {
			t.Errorf("count %d, last %v: beats after the end count", m.Count(), m.Last())
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		for name, c := range map[string]context.Context{"context": ctx, "derived": child} {
			if c.Err() != context.Canceled || context.Cause(c) != context.Canceled {
				t.Errorf("%s: %v, because of %v; want %v", name, c.Err(), context.Cause(c), context.Canceled)
			}
		}
		if err := timeout.Run(ctx, func(context.Context) error { t.Error("started"); return nil }); !errors.Is(err, timeout.ErrAborted) {
			t.Errorf("Run under an ended execution: %v", err)
		}
	})
}

// SPEC 2.5: executions that run keep their configuration.
func TestSetDefaultWhileRunning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		timeout.SetDefault(timeout.Config{Total: 10 * time.Second})
		defer timeout.SetDefault(timeout.Default())
		done := make(chan error)
		go func() {
			done <- timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil })
		}()
		synctest.Wait()
		timeout.SetDefault(timeout.Config{Total: time.Second})
		start := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return nil })
		if e := stopped(t, err); e.Limit != time.Second || time.Since(start) != time.Second {
			t.Errorf("new execution stopped by %v", e.Limit)
		}
		if e := stopped(t, <-done); e.Limit != 10*time.Second {
			t.Errorf("running execution stopped by %v", e.Limit)
		}
		timeout.SetDefault(timeout.Config{})
		err = timeout.Run(t.Context(), func(ctx context.Context) error { time.Sleep(time.Hour * 100); return ctx.Err() })
		if err != nil {
			t.Errorf("with all limits off: %v", err)
		}
	})
}

func TestNilArguments(t *testing.T) {
	for name, call := range map[string]func(){
		//lint:ignore SA1012 that is the mistake that the test makes
		"context":        func() { _ = timeout.Run(nil, func(context.Context) error { return nil }) },
		"function":       func() { _ = timeout.Run(context.Background(), nil) },
		"function of Do": func() { _, _ = timeout.Do[int](context.Background(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
	if err := timeout.Run(context.Background(), func(context.Context) error { return nil }, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

// SPEC 3.5: beats are absorbed for a millisecond, from the one that begins the burst, and then
// each counts again, whatever the timer was set for, if at all.
func TestBurst(t *testing.T) {
	for name, limits := range map[string]timeout.Config{
		"no limits": {},
		"a total":   {Total: time.Hour},
		"both":      {Total: time.Hour, Idle: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					m := heartbeat.FromContext(ctx)
					for range 3 {
						time.Sleep(10 * time.Second) // the burst is not at the start of the run
						for range 1000 {
							m.Beat()
						}
						began, counted := time.Now(), m.Count()
						time.Sleep(time.Millisecond - 1)
						m.Beat()
						if m.Count() != counted || !m.Last().Equal(began) {
							t.Errorf("1ns before its end the burst is over: %d more beats, the last %v after its beginning", m.Count()-counted, m.Last().Sub(began))
						}
						time.Sleep(time.Nanosecond)
						synctest.Wait()
						m.Beat()
						if m.Count() != counted+1 || m.Last().Sub(began) != time.Millisecond {
							t.Errorf("at its end the burst goes on: %d more beats, the last %v after its beginning", m.Count()-counted, m.Last().Sub(began))
						}
					}
					return nil
				}, limits)
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
