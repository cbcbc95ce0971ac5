package request_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const s = time.Second

var errRefused = errors.New("refused")

// SPEC 8.5: 3 more tries, after 2 s, 4 s and 8 s, unless said otherwise.
func TestRetry(t *testing.T) {
	always := func(error) bool { return true }
	forever := time.Duration(math.MaxInt64)
	for _, tc := range []struct {
		name    string
		backoff request.Backoff
		again   func(error) bool
		fails   int // how many tries do
		want    []time.Duration
	}{
		{"the first succeeds", request.Backoff{}, always, 0, []time.Duration{0}},
		{"the second", request.Backoff{}, always, 1, []time.Duration{0, 2 * s}},
		{"the last", request.Backoff{}, always, 3, []time.Duration{0, 2 * s, 6 * s, 14 * s}},
		{"in vain", request.Backoff{}, always, 99, []time.Duration{0, 2 * s, 6 * s, 14 * s}},
		{"a final error", request.Backoff{}, func(error) bool { return false }, 99, []time.Duration{0}},
		{"not at all", request.Backoff{Retries: -1}, always, 99, []time.Duration{0}},
		{"once", request.Backoff{Retries: 1, First: ms}, always, 99, []time.Duration{0, ms}},
		{"no longer than a minute", request.Backoff{Retries: 4, First: 20 * s}, always, 99, []time.Duration{0, 20 * s, 60 * s, 120 * s, 180 * s}},
		{"no longer than the first", request.Backoff{Retries: 2, First: 90 * s}, always, 99, []time.Duration{0, 90 * s, 180 * s}},
		{"as long as there is", request.Backoff{Retries: 1, First: forever / 2}, always, 99, []time.Duration{0, forever / 2}},
		{"no longer than said", request.Backoff{Retries: 3, First: s, Max: 2 * s}, always, 99, []time.Duration{0, s, 3 * s, 5 * s}},
		{"as often as it takes", request.Backoff{Retries: math.MaxInt, First: 30 * s, Max: 1}, always, 4, []time.Duration{0, 30 * s, 60 * s, 90 * s, 120 * s}},
		{"a negative wait is the default", request.Backoff{Retries: 1, First: -1}, always, 99, []time.Duration{0, 2 * s}},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			start := time.Now()
			var got []time.Duration
			n, err := request.Retry(t.Context(), tc.backoff, tc.again, func() (int, error) {
				got = append(got, time.Since(start))
				if len(got) <= tc.fails {
					return len(got), errRefused
				}
				return len(got), nil
			})
			if diff := cmp.Diff(tc.want, got); diff != "" || n != len(got) || (err == nil) != (len(got) > tc.fails) || err != nil && err != errRefused {
				t.Errorf("%d, %v, tries (-want +got):\n%s", n, err, diff)
			}
		})
	}
}

// due is a context whose deadline no timer of its own has noticed yet.
type due struct {
	context.Context
	at time.Time
}

func (d due) Deadline() (time.Time, bool) { return d.at, true }

// A try that the caller's deadline has stopped may be back before the context knows that it has
// ended: from that instant on there is no other try, and nothing to wait for.
func TestRetryAtTheDeadline(t *testing.T) {
	for _, tc := range []struct {
		name  string
		left  time.Duration
		tries int
		err   string
	}{
		{"after the next try", 2*s + 1, 2, "refused"},
		{"at the next try", 2 * s, 1, "waiting to try again (refused): Maximum total timeout exceeded: 2s"},
		{"in 1 ns", 1, 1, "waiting to try again (refused): Maximum total timeout exceeded: 1ns"},
		{"now", 0, 1, "refused"},
	} {
		bubble(t, tc.name, func(t *testing.T) {
			ctx := due{t.Context(), time.Now().Add(tc.left)}
			tries := 0
			_, err := request.Retry(ctx, request.Backoff{Retries: 1}, func(error) bool { return true }, func() (int, error) {
				tries++
				return 0, errRefused
			})
			if tries != tc.tries || err == nil || err.Error() != tc.err {
				t.Errorf("%d tries and %v, want %d and %s", tries, err, tc.tries, tc.err)
			}
		})
	}
}

// SPEC 4.8: a watcher sees the wait for the next try, and no tool.
func TestRetryIsNoTool(t *testing.T) {
	bubble(t, "watched", func(t *testing.T) {
		waits := 0
		defer timeout.Watch(timeout.Hooks{Finished: func(_ context.Context, e timeout.Snapshot) {
			if waits++; e.Operation != timeout.OperationRequest {
				t.Errorf("a %v for %v", e.Operation, e.Elapsed)
			}
		}})()
		_, _ = request.Retry(t.Context(), request.Backoff{}, func(error) bool { return true }, func() (int, error) { return 0, errRefused })
		if waits != 6 { // three waits, and as many decisions to try again
			t.Errorf("%d executions", waits)
		}
	})
}

// SPEC 8.7, 3.24: a caller that gives up while it is decided whether to try again has given up, however soon after the
// failure, and no decision keeps it for longer than a second.
func TestRetryWhileItIsDecided(t *testing.T) {
	for name, tc := range map[string]struct {
		decides time.Duration
		again   bool
		after   time.Duration
		aborted bool
	}{
		"at once":  {0, true, 0, true},
		"too late": {time.Hour, true, s, false},
		"no":       {0, false, 0, false},
	} {
		bubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			start, tries := time.Now(), 0
			_, err := request.Retry(ctx, request.Backoff{}, func(error) bool {
				cancel()
				time.Sleep(tc.decides)
				return tc.again
			}, func() (int, error) { tries++; return 0, errRefused })
			if tries != 1 || time.Since(start) != tc.after || errors.Is(err, errRefused) == tc.aborted || tc.aborted && timeout.ExitCode(err) != 130 {
				t.Errorf("%d tries, %v after %v", tries, err, time.Since(start))
			}
			time.Sleep(2 * time.Hour)
		})
	}
}
