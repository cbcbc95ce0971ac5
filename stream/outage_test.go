package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

func times(n int, a answer) []answer { return slices.Repeat([]answer{a}, n) }

// SPEC 9.1, 9.2: 500 ms first, factor 1.2, at most 10 s, unless the fields say otherwise.
func TestBackoff(t *testing.T) {
	const s = time.Second
	grown := []time.Duration{0, 500 * ms, 600 * ms, 720 * ms, 864 * ms, 1036800 * time.Microsecond}
	for len(grown) < 21 {
		grown = append(grown, min(time.Duration(math.Round(float64(grown[len(grown)-1])*1.2)), 10*s))
	}
	for _, tc := range []struct {
		name    string
		backoff stream.Backoff
		want    []time.Duration
	}{
		{"the default", stream.Backoff{}, append(grown, 10*s)},
		{"doubled", stream.Backoff{First: s, Max: 3 * s, Factor: 2}, []time.Duration{0, s, 2 * s, 3 * s, 3 * s}},
		{"a factor below 1", stream.Backoff{First: s, Factor: -2}, []time.Duration{0, s, s, s}},
		{"not a number", stream.Backoff{First: s, Factor: math.NaN()}, []time.Duration{0, s, s, s}},
		{"infinite", stream.Backoff{Factor: math.Inf(1)}, []time.Duration{0, 500 * ms, 10 * s, 10 * s}},
		{"no first delay", stream.Backoff{First: -1, Factor: 3}, []time.Duration{0, 100 * ms, 300 * ms, 900 * ms, 2700 * ms}},
		{"a bound below the first", stream.Backoff{First: time.Minute, Max: s}, []time.Duration{0, time.Minute, time.Minute}},
	} {
		h := hearing{name: tc.name, n: stream.Notifications{Backoff: tc.backoff}, brief: true, got: "a", asked: tc.want}
		h.script = append([]answer{events("data: a\n\n")}, times(len(tc.want)-2, refuses)...)
		h.run(t)
	}
}

// SPEC 9.1: the back-off starts again after a chunk and after a silence, which is found exactly at the limit.
func TestBackoffAfresh(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before answer
		got    string
		want   time.Duration // the wait after it, where the one before was 600 ms
	}{
		{"after an event", events("data: b\n\n"), "ab", 500 * ms},
		{"after a byte", events(":"), "a", 500 * ms},
		{"after a connection without one", events(), "a", 720 * ms},
		{"after a connection that breaks", events(io.ErrUnexpectedEOF), "a", 720 * ms},
		{"after a silence", events(silence), "a", 500*ms + limit},
		{"after events and comments in time", events(limit-1, ": alive\n\n", limit-1, "data: b\n\n", silence), "ab", 500*ms + 3*limit - 2},
		{"after an event that is too late", events(limit+1, "data: b\n\n"), "a", 500*ms + limit},
		{"after a header that did not come", deaf, "a", 720*ms + limit},
		{"after a refusal", status(503), "a", 720 * ms},
	} {
		h := hearing{name: tc.name, script: []answer{events("data: a\n\n"), refuses, tc.before}, brief: true, got: tc.got, asked: []time.Duration{0, 500 * ms, 600 * ms, tc.want}}
		h.run(t)
	}
}

// The server's retry field sets the first delay, within bounds.
func TestRetryField(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"retry: 2000": 2000 * ms, "retry:2000": 2000 * ms, "retry: 99": 100 * ms, "retry: 0": 100 * ms, "retry: 10001": 10000 * ms,
		"retry: 99999999999999999999": 10000 * ms, "retry: 1e3": 500 * ms, "retry: -1": 500 * ms, "retry:": 500 * ms, "Retry: 2000": 500 * ms,
		"retry: 2000\ndata: not ended": 2000 * ms, "retry: 2000\n\nretry: 300": 300 * ms,
	} {
		h := hearing{name: field, script: []answer{events(field + "\n"), refuses}, asked: []time.Duration{0, want, min(want+want/5, 10*time.Second)}}
		if strings.Contains(field, "\n\n") {
			h.got = "retry: 2000\n\n"
		}
		h.run(t)
	}
}

// SPEC 9.1: GiveUp is exact on both sides.
func TestGiveUp(t *testing.T) {
	const give = 2 * time.Second
	a, b := events("data: a\n\n"), events("data: b\n\n")
	tries := []time.Duration{0, 500 * ms, 600 * ms, 720 * ms, 180 * ms} // the last attempt is at the limit
	for _, tc := range []struct {
		name    string
		script  []answer
		got     string
		asked   []time.Duration
		elapsed time.Duration
		tried   int
		last    error // of the last attempt
		cause   error
	}{
		{"server unreachable", append([]answer{a}, times(9, refuses)...), "a",
			tries, give, 4, errRefused, io.ErrUnexpectedEOF},
		{"reachable for the last attempt only", slices.Concat([]answer{a}, times(3, refuses), []answer{b}, times(9, refuses)), "ab",
			append(slices.Clone(tries), tries[1:]...), give, 4, errRefused, io.ErrUnexpectedEOF},
		{"no header, in the attempt that is under way", []answer{a, deaf}, "a",
			tries[:2], 500*ms + limit, 1, timeout.ErrIdle, io.ErrUnexpectedEOF},
		{"no header, in the last attempt", []answer{a, refuses, refuses, refuses, deaf}, "a",
			tries, give + limit, 4, timeout.ErrIdle, io.ErrUnexpectedEOF},
		{"503", append([]answer{a}, times(9, status(503))...), "a",
			tries, give, 4, &stream.ReopenError{StatusCode: 503, ContentType: "text/plain", Err: io.ErrUnexpectedEOF}, io.ErrUnexpectedEOF},
		{"connections without a byte", append([]answer{a}, times(9, events())...), "a",
			tries, give, 4, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"a connection without a byte that is lost in time", []answer{a, events(give-500*ms-1, io.ErrNoProgress), refuses}, "a",
			[]time.Duration{0, 500 * ms, give - 500*ms}, give, 2, errRefused, io.ErrUnexpectedEOF},
		{"a connection without a byte that is lost at the limit", []answer{a, events(give-500*ms, io.ErrNoProgress), refuses}, "a",
			tries[:2], give, 1, io.ErrNoProgress, io.ErrUnexpectedEOF},
		{"a comment ends it", slices.Concat([]answer{a, refuses, events(":")}, times(9, refuses)), "a",
			append([]time.Duration{0, 500 * ms, 600 * ms}, tries[1:]...), give, 4, errRefused, io.ErrUnexpectedEOF},
		{"a connection that stays open ends it", slices.Concat([]answer{a, refuses, events(silence)}, times(9, refuses)), "a",
			append([]time.Duration{0, 500 * ms, 600 * ms, limit + 500*ms}, tries[2:]...), give, 4, errRefused, timeout.ErrIdle},
	} {
		h := hearing{name: tc.name, n: stream.Notifications{GiveUp: give}, script: tc.script, brief: true, got: tc.got, asked: tc.asked}
		h.stopped = func(err error) bool {
			var o *stream.OutageError
			if !errors.As(err, &o) || !errors.Is(o.Cause, tc.cause) || !errors.Is(o, tc.cause) {
				return false
			}
			same := errors.Is(o.Err, tc.last) && errors.Is(o, tc.last)
			if want, ok := tc.last.(*stream.ReopenError); ok {
				got, ok := o.Err.(*stream.ReopenError)
				same = ok && *got == *want
			}
			return same && o.Elapsed == tc.elapsed && o.Attempts == tc.tried && o.Next == 0 && o.Timeout()
		}
		h.run(t)
	}
	// SPEC 2.13: without a GiveUp, attempts go on for ever.
	for _, d := range []time.Duration{0, -1} {
		h := hearing{name: "never", n: stream.Notifications{GiveUp: d}, script: append([]answer{a}, times(5000, refuses)...), brief: true, got: "a", ids: make([]string, 5002)}
		h.run(t)
	}
}

// Guarantee 10: the hook and the log report each event in order.
func TestReportAndLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type call struct {
			Err     string
			Elapsed time.Duration
			Tried   int
			Next    time.Duration
		}
		var calls []call
		note := func(ctx context.Context, o *stream.OutageError) {
			c := call{Elapsed: o.Elapsed, Tried: o.Attempts, Next: o.Next}
			if o.Err != nil {
				c.Err = o.Err.Error()
			}
			if calls = append(calls, c); ctx.Err() != nil || !errors.Is(o.Cause, io.ErrUnexpectedEOF) {
				t.Errorf("%+v: %v, %v", c, ctx.Err(), o.Cause)
			}
		}
		var log bytes.Buffer
		n := &stream.Notifications{
			GiveUp: time.Second,
			Report: note,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})),
		}
		n.Base = &server{script: []answer{
			events("data: a\n\n"), status(503), events("data: b\n\n"), refuses, refuses,
		}}
		_, _ = fetch(&http.Client{Transport: n}, get(context.Background()))
		const half, second = 500 * ms, time.Second
		want := []call{
			{Next: half},
			{"stream: not reopened: 503 Service Unavailable", half, 1, half},
			{Elapsed: second, Tried: 2},
			{Next: half},
			{"connection refused", half, 1, half},
			{"connection refused", second, 2, 0},
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Error(diff)
		}
		wantLog := strings.Join([]string{
			`level=INFO msg="event stream lost" server=server.test/mcp elapsed=0s attempts=0 cause="unexpected EOF" next=500ms`,
			`level=WARN msg="event stream not reopened" server=server.test/mcp elapsed=500ms attempts=1 cause="unexpected EOF" error="stream: not reopened: 503 Service Unavailable" next=500ms`,
			`level=INFO msg="event stream reopened" server=server.test/mcp elapsed=1s attempts=2 cause="unexpected EOF"`,
			`level=INFO msg="event stream lost" server=server.test/mcp elapsed=0s attempts=0 cause="unexpected EOF" next=500ms`,
			`level=WARN msg="event stream not reopened" server=server.test/mcp elapsed=500ms attempts=1 cause="unexpected EOF" error="connection refused" next=500ms`,
			`level=WARN msg="event stream not reopened" server=server.test/mcp elapsed=1s attempts=2 cause="unexpected EOF" error="connection refused"`,
			`level=WARN msg="event stream not reopened, given up" server=server.test/mcp elapsed=1s attempts=2 cause="unexpected EOF" error="connection refused"`,
			"",
		}, "\n")
		if diff := cmp.Diff(wantLog, log.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// Guarantee 10: a loss at which the stream is given up is reported too, after the success of the attempt before it.
func TestReportOfTheLastLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const give = 2 * time.Second
		var calls []stream.OutageError
		n := &stream.Notifications{GiveUp: give, Report: func(_ context.Context, o *stream.OutageError) { calls = append(calls, *o) }}
		n.Base = &server{script: []answer{events("data: a\n\n"), events(give-500*ms, io.ErrNoProgress)}}
		_, err := fetch(&http.Client{Transport: n}, get(context.Background()))
		want := []stream.OutageError{
			{Cause: io.ErrUnexpectedEOF, Next: 500 * ms},
			{Cause: io.ErrUnexpectedEOF, Elapsed: 500 * ms, Attempts: 1},
			{Cause: io.ErrUnexpectedEOF, Elapsed: give, Attempts: 1, Err: io.ErrNoProgress},
		}
		if diff := cmp.Diff(want, calls, cmpopts.EquateErrors()); diff != "" {
			t.Error(diff)
		}
		if last := (*stream.OutageError)(nil); !errors.As(err, &last) || last.Error() != want[2].Error() {
			t.Errorf("error is %v", err)
		}
	})
}

// The text of each step is true, and the zero values of the errors can be used, as in a test of the caller's.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		err        error
		is         error
	}{
		{"lost", "stream: lost: unexpected EOF", &stream.OutageError{Cause: io.ErrUnexpectedEOF, Next: time.Second}, io.ErrUnexpectedEOF},
		{"not reopened", "stream: not reopened within 1s, attempts: 2: connection refused", &stream.OutageError{Cause: io.ErrUnexpectedEOF, Err: errRefused, Elapsed: time.Second, Attempts: 2}, errRefused},
		{"lost again before the first attempt", "stream: not reopened within 1s, attempts: 1: unexpected EOF", &stream.OutageError{Cause: io.EOF, Err: io.ErrUnexpectedEOF, Elapsed: time.Second, Attempts: 1}, io.EOF},
		{"reopened", "stream: reopened after 1s, attempts: 2; it was lost: unexpected EOF", &stream.OutageError{Cause: io.ErrUnexpectedEOF, Elapsed: time.Second, Attempts: 2}, io.ErrUnexpectedEOF},
		{"silence", "stream: stalled for 0s before the first event: 0 events in 0s", &stream.SilenceError{}, timeout.ErrIdle},
	} {
		if got := tc.err.Error(); got != tc.want || !errors.Is(tc.err, tc.is) {
			t.Errorf("%s: got %q, want %q; it matches %v: %v", tc.name, got, tc.want, tc.is, errors.Is(tc.err, tc.is))
		}
		if all, ok := tc.err.(interface{ Unwrap() []error }); ok && slices.Contains(all.Unwrap(), nil) {
			t.Errorf("%s: there is a nil among %v", tc.name, all.Unwrap())
		}
	}
	if text := (&stream.OutageError{Err: errors.New(strings.Repeat("x", 1<<20)), Attempts: 1}).Error(); len(text) > 1<<17 { // SPEC 3.25
		t.Errorf("%d bytes", len(text))
	}
}

// A deafError is compared with nothing.
type deafError struct{ until <-chan struct{} }

func (deafError) Error() string   { return "deaf" }
func (e deafError) Is(error) bool { <-e.until; return false }

// SPEC 3.24: a stream is given up in time, whatever the methods of the errors of its reads and of its Base do.
func TestDeafErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		asked := 0
		n := &stream.Notifications{GiveUp: time.Minute, Base: roundTrip(func(*http.Request) (*http.Response, error) {
			if asked++; asked > 1 {
				return nil, deafError{until}
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: io.NopCloser(iotest.ErrReader(deafError{until}))}, nil
		})}
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := n.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		begun, done := time.Now(), make(chan error, 1)
		go func() {
			_, err := resp.Body.Read(make([]byte, 1))
			done <- err
		}()
		select {
		case err = <-done:
		case <-time.After(time.Hour):
		}
		if _, ok := err.(*stream.OutageError); !ok || time.Since(begun) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		close(until)
	})
}
