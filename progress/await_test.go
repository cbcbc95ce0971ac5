package progress_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const expired = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."

var errDenied = errors.New("denied")

// person answers after d, and stops when its context does.
func person(d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return "yes", errDenied
		case <-ctx.Done():
			return "partial", context.Cause(ctx)
		}
	}
}

// SPEC 7.9: the limit is exact to the nanosecond, and the idle check is held.
func TestAwait(t *testing.T) {
	for _, tc := range []struct {
		name    string
		opts    progress.Wait
		answer  time.Duration
		expires time.Duration // 0 if the answer comes
	}{
		{"the default, a nanosecond before", progress.Wait{}, 30*s - 1, 0},
		{"the default, at the limit", progress.Wait{}, 30 * s, 30 * s},
		{"given, before", progress.Wait{Limit: 120 * s, ProgressLimit: 120 * s}, 120*s - 1, 0},
		{"given, at the limit", progress.Wait{Limit: 120 * s, ProgressLimit: 120 * s}, 120 * s, 120 * s},
		{"held without keep-alives", progress.Wait{KeepAlive: -1}, 20 * s, 0},
		{"a negative limit means none, SPEC 2.13", progress.Wait{Limit: -1, ProgressLimit: -1}, 50 * time.Minute, 0},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				start := time.Now()
				got, err := progress.Await(ctx, "rm", tc.opts, person(tc.answer))
				took := time.Since(start)
				if tc.expires == 0 {
					if got != "yes" || err != errDenied || took != tc.answer {
						t.Errorf("%q, %v after %v", got, err, took)
					}
					return nil
				}
				var e *timeout.Error
				if got == "" || err == nil || err.Error() != expired || took != tc.expires ||
					!errors.Is(err, progress.ErrNoAnswer) || !errors.As(err, &e) || e.Limit != tc.expires ||
					!errors.Is(err, context.DeadlineExceeded) || timeout.ExitCode(err) != timeout.ExitTimeout {
					t.Errorf("%q, %v after %v", got, err, took)
				}
				return nil
			}, timeout.Config{Total: time.Hour, Idle: 5 * s})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// SPEC 7.9: a keep-alive every 10 s says what is awaited and leaves the tool's figures unchanged.
// Afterwards the tool's message is back.
func TestAwaitTellsTheClient(t *testing.T) {
	waiting := func(times string) string { return "Waiting for approval of rm -r build (" + times + ")" }
	var after [4]float64
	for i, p := 0, 3.0; i < len(after); i++ {
		p = progress.Step(p)
		after[i] = p
	}
	synctest.Test(t, func(t *testing.T) {
		call(t, "t", 0, func(ctx context.Context) {
			report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
			time.Sleep(10 * s)
			_, _ = progress.Await(ctx, "rm -r build", progress.Wait{}, person(21*s))
			time.Sleep(9 * s)
			heartbeat.Beat(ctx)
			synctest.Wait()
		}).want(t,
			note{0, 3, 10, "main.go"},
			note{10 * s, after[0], 10, waiting("up to 2m0s")},
			note{20 * s, after[1], 10, waiting("10s so far, 1m50s left")},
			note{30 * s, after[2], 10, waiting("20s so far, 1m40s left")},
			note{40 * s, after[3], 10, "main.go"},
		)
	})
}

// SPEC 7.9: a pending keep-alive is dropped when the wait ends, even if its delivery has been
// decided on.
func TestAwaitLeavesNothingPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call(t, "t", 0, func(ctx context.Context) {
			_, _ = progress.Await(ctx, "rm", progress.Wait{}, person(3*s))
			time.Sleep(time.Minute)
		}).want(t, note{0, 0, 0, "Waiting for approval of rm (up to 2m0s)"})
	})
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			c := call(t, "t", 0, func(ctx context.Context) {
				_, _ = progress.Await(ctx, "rm", progress.Wait{}, func(context.Context) (int, error) { return 0, nil })
				synctest.Wait()
			})
			for _, n := range c.notes {
				if n.Message == "" {
					t.Errorf("%+v", n)
				}
			}
		})
	}
}

// SPEC 7.9: an update that another goroutine reports during the wait stays.
func TestAwaitLeavesNewerUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call(t, "t", 0, func(ctx context.Context) {
			_, _ = progress.Await(ctx, "rm", progress.Wait{Limit: -1, ProgressLimit: -1}, func(context.Context) (int, error) {
				time.Sleep(3 * s)
				report(ctx, progress.Update{Progress: 1, Message: "elsewhere"})
				return 0, nil
			})
			time.Sleep(20 * s)
		}).want(t, note{0, 0, 0, "Waiting for approval of rm"}, note{10 * s, 1, 0, "elsewhere"})
	})
}

// Await returns an error of ask unchanged, even a timeout of the same length. A late error of ask
// is in the tree.
func TestAwaitErrors(t *testing.T) {
	own := &timeout.Error{Kind: timeout.ErrTotal, Figures: timeout.Figures{Limits: timeout.Config{Total: 30 * time.Second}}}
	synctest.Test(t, func(t *testing.T) {
		if _, err := progress.Await(t.Context(), "rm", progress.Wait{}, func(context.Context) (int, error) { return 0, own }); err != own {
			t.Errorf("%v", err)
		}
		_, err := progress.Await(t.Context(), "rm", progress.Wait{}, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, errDenied })
		if !errors.Is(err, progress.ErrNoAnswer) || !errors.Is(err, errDenied) {
			t.Errorf("%v", err)
		}
	})
}

// SPEC 7.9: the idle check resumes after the answer.
func TestAwaitReleasesTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := timeout.Run(t.Context(), func(ctx context.Context) error {
			_, _ = progress.Await(ctx, "rm", progress.Wait{}, person(20*s))
			<-ctx.Done()
			return nil
		}, timeout.Config{Idle: 5 * s})
		if !errors.Is(err, timeout.ErrIdle) || time.Since(start) != 25*s {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// SPEC 2.13: keep-alives every few nanoseconds are every millisecond.
func TestAwaitKeepAliveOfNanoseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call(t, nil, 0, func(ctx context.Context) {
			before := heartbeat.FromContext(ctx).Count()
			_, _ = progress.Await(ctx, "rm", progress.Wait{KeepAlive: 10}, person(2*time.Millisecond+time.Microsecond))
			if n := heartbeat.FromContext(ctx).Count() - before; n > 4 {
				t.Errorf("%d beats in 2 ms", n)
			}
		})
	})
}
