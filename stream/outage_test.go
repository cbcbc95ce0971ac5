package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// through reads the stream that n opens on s to its end.
func through(t *testing.T, n *stream.Notifications, s *server) (string, error) {
	t.Helper()
	n.Base, n.Idle = s, limit
	got, err := fetch(&http.Client{Transport: n}, get(context.Background()))
	if s.open != 0 {
		t.Errorf("%d bodies left open", s.open)
	}
	return got, err
}

func times(n int, a answer) []answer { return slices.Repeat([]answer{a}, n) }

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
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: tc.script}
				got, err := through(t, &stream.Notifications{GiveUp: give}, s)
				if got = strings.NewReplacer("data: ", "", "\n", "").Replace(got); got != tc.got {
					t.Errorf("%q, want %q", got, tc.got)
				}
				if diff := cmp.Diff(tc.asked, s.asked); diff != "" {
					t.Errorf("asked: %s", diff)
				}
				var o *stream.OutageError
				if !errors.As(err, &o) {
					t.Fatalf("error is %v", err)
				}
				if o.Elapsed != tc.elapsed || o.Attempts != tc.tried || o.Next != 0 || !o.Timeout() {
					t.Errorf("%+v, want %v, %d", o.Outage, tc.elapsed, tc.tried)
				}
				if !errors.Is(o.Cause, tc.cause) || !errors.Is(o, tc.cause) {
					t.Errorf("cause %v, want %v", o.Cause, tc.cause)
				}
				same := errors.Is(o.Err, tc.last) && errors.Is(o, tc.last)
				if want, ok := tc.last.(*stream.ReopenError); ok {
					got, ok := o.Err.(*stream.ReopenError)
					same = ok && *got == *want
				}
				if !same {
					t.Errorf("last attempt %v, want %v", o.Err, tc.last)
				}
			})
		})
	}
}

// SPEC 2.13: without a GiveUp, attempts go on for ever.
func TestNeverGivesUp(t *testing.T) {
	for _, d := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{script: append([]answer{events("data: a\n\n")}, times(5000, refuses)...)}
			_, err := through(t, &stream.Notifications{GiveUp: d}, s)
			var refused *stream.ReopenError
			if !errors.As(err, &refused) || len(s.asked) != 5002 {
				t.Errorf("%v after %d requests", err, len(s.asked))
			}
		})
	}
}

// The hooks and the log report each event in order.
func TestHooksAndLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type call struct {
			Hook string
			Err  string
			stream.Outage
		}
		var calls []call
		note := func(hook string) func(context.Context, stream.Outage) {
			return func(ctx context.Context, o stream.Outage) {
				c := call{Hook: hook, Outage: o}
				if o.Err != nil {
					c.Err = o.Err.Error()
				}
				c.Outage.Err, c.Cause = nil, nil
				if calls = append(calls, c); ctx.Err() != nil || !errors.Is(o.Cause, io.ErrUnexpectedEOF) {
					t.Errorf("%s: %v, %v", hook, ctx.Err(), o.Cause)
				}
			}
		}
		var log bytes.Buffer
		n := &stream.Notifications{
			GiveUp: time.Second,
			Hooks:  stream.Hooks{Lost: note("lost"), Failed: note("failed"), Reopened: note("reopened")},
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})),
		}
		_, _ = through(t, n, &server{script: []answer{
			events("data: a\n\n"), status(503), events("data: b\n\n"), refuses, refuses,
		}})
		const half, second = 500 * ms, time.Second
		want := []call{
			{"lost", "", stream.Outage{Next: half}},
			{"failed", "stream: not reopened: 503 Service Unavailable", stream.Outage{Elapsed: half, Attempts: 1, Next: half}},
			{"reopened", "", stream.Outage{Elapsed: second, Attempts: 2}},
			{"lost", "", stream.Outage{Next: half}},
			{"failed", "connection refused", stream.Outage{Elapsed: half, Attempts: 1, Next: half}},
			{"failed", "connection refused", stream.Outage{Elapsed: second, Attempts: 2}},
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

// A hook may close the stream.
func TestHookCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var body io.ReadCloser
		s := &server{script: []answer{events()}}
		rt := &stream.Notifications{Base: s, Idle: limit, GiveUp: time.Minute, Hooks: stream.Hooks{
			Lost: func(context.Context, stream.Outage) { _ = body.Close() },
		}}
		resp, err := rt.RoundTrip(get(context.Background()))
		if err != nil {
			t.Fatal(err)
		}
		body = resp.Body
		if _, err := io.ReadAll(body); err != http.ErrBodyReadAfterClose || len(s.asked) != 1 {
			t.Errorf("%v, %d requests", err, len(s.asked))
		}
	})
}
