package stream_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
)

// SPEC 9.1: 500 ms first, factor 1.2, at most 10 s.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{events("data: a\n\n")}}
		for range 20 {
			s.script = append(s.script, refuses)
		}
		got, err := hear(t, s)
		var gone *stream.ReopenError
		if got != "data: a\n\n" || !errors.As(err, &gone) || gone.StatusCode != http.StatusNoContent {
			t.Errorf("%q, %v", got, err)
		}
		want := []time.Duration{0, 500 * ms, 600 * ms, 720 * ms, 864 * ms, 1036800 * time.Microsecond}
		if diff := cmp.Diff(want, s.asked[:6]); diff != "" {
			t.Error(diff)
		}
		if got := s.asked[17].Truncate(10 * ms); got != 9240*ms { // 500 ms times 1.2 to the 16th
			t.Errorf("17th wait is %v", got)
		}
		if diff := cmp.Diff(slices.Repeat([]time.Duration{10 * time.Second}, 4), s.asked[18:]); diff != "" {
			t.Error(diff)
		}
	})
}

// SPEC 9.1: the back-off starts again after a chunk and after a silence.
func TestBackoffAfresh(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before answer
		want   time.Duration // the wait after it, where the one before was 600 ms
	}{
		{"after an event", events("data: b\n\n"), 500 * ms},
		{"after a byte", events(":"), 500 * ms},
		{"after a connection without one", events(), 720 * ms},
		{"after a connection that breaks", events(io.ErrUnexpectedEOF), 720 * ms},
		{"after a silence", events(silence), 500*ms + limit},
		{"after a header that did not come", deaf, 720*ms + limit},
		{"after a refusal", status(503), 720 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{events("data: a\n\n"), refuses, tc.before}}
				_, _ = hear(t, s)
				if diff := cmp.Diff([]time.Duration{0, 500 * ms, 600 * ms, tc.want}, s.asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// The server's retry field sets the first delay, within bounds.
func TestRetryField(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"retry: 2000":                   2000 * ms,
		"retry:2000":                    2000 * ms,
		"retry: 100":                    100 * ms,
		"retry: 99":                     100 * ms,
		"retry: 0":                      100 * ms,
		"retry: 10000":                  10 * time.Second,
		"retry: 10001":                  10 * time.Second,
		"retry: 99999999999999999999":   10 * time.Second,
		"retry: 1e3":                    500 * ms,
		"retry: -1":                     500 * ms,
		"retry:":                        500 * ms,
		"Retry: 2000":                   500 * ms,
		"retry: 2000\ndata: not ended":  2000 * ms,
		"retry: 2000\n\nretry: 300\n\n": 300 * ms,
	} {
		t.Run(field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{events(field + "\n"), refuses}}
				_, _ = hear(t, s)
				if diff := cmp.Diff([]time.Duration{0, want, min(want+want/5, 10*time.Second)}, s.asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// SPEC 9.1: a silent stream is found exactly at the limit.
func TestSilenceIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{
			events(limit-1, "data: a\n\n", limit-1, ": alive\n\n", limit-1, "data: b\n\n", silence),
			events(limit+1, "data: too late\n\n"),
			events(limit-1, "data: c\n\n"),
		}}
		got, _ := hear(t, s)
		if want := "data: a\n\ndata: b\n\ndata: c\n\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		want := []time.Duration{0, 4*limit - 3 + 500*ms, limit + 500*ms, limit - 1 + 500*ms}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Error(diff)
		}
	})
}

// SPEC 9.2: the delays are a field.
func TestBackoffField(t *testing.T) {
	for _, tc := range []struct {
		name    string
		backoff stream.Backoff
		want    []time.Duration
	}{
		{"doubled", stream.Backoff{First: time.Second, Max: 3 * time.Second, Factor: 2}, []time.Duration{0, 1000 * ms, 2000 * ms, 3000 * ms, 3000 * ms}},
		{"equal", stream.Backoff{First: time.Second, Factor: 1}, []time.Duration{0, 1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms}},
		{"a factor below 1", stream.Backoff{First: time.Second, Factor: -2}, []time.Duration{0, 1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms}},
		{"not a number", stream.Backoff{First: time.Second, Factor: math.NaN()}, []time.Duration{0, 1000 * ms, 1000 * ms, 1000 * ms, 1000 * ms}},
		{"infinite", stream.Backoff{Factor: math.Inf(1)}, []time.Duration{0, 500 * ms, 10000 * ms, 10000 * ms, 10000 * ms}},
		{"no first delay", stream.Backoff{First: -1, Factor: 3}, []time.Duration{0, 100 * ms, 300 * ms, 900 * ms, 2700 * ms}},
		{"a bound below the first", stream.Backoff{First: time.Minute, Max: time.Second}, []time.Duration{0, time.Minute, time.Minute, time.Minute, time.Minute}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{events("data: a\n\n"), refuses, refuses, refuses}}
				client := &http.Client{Transport: &stream.Notifications{Base: s, Idle: limit, Backoff: tc.backoff}}
				_, _ = fetch(client, get(t.Context()))
				if diff := cmp.Diff(tc.want, s.asked); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
