package httptimeout_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// The client's deadline is that of the request, on request only. It shortens the total, and nothing that cannot be read
// does. SPEC 18.6.
func TestRequestTimeout(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name   string
		take   bool
		total  time.Duration
		header string
		want   time.Duration // when the handler is stopped
		body   string
	}{
		{"shorter", true, 30 * s, "2", 2 * s, "The request timed out after 2 s.\n"},
		{"a fraction", true, 30 * s, "0.25", s / 4, "The request timed out after 0.25 s.\n"},
		{"longer", true, 30 * s, "31", 30 * s, "The request timed out after 30 s.\n"},
		{"no total", true, 0, "40", 40 * s, "The request timed out after 40 s.\n"},
		{"not asked for", false, 30 * s, "2", 30 * s, "The request timed out after 30 s.\n"},
		{"none", true, 30 * s, "", 30 * s, "The request timed out after 30 s.\n"},
		{"zero", true, 30 * s, "0", 30 * s, "The request timed out after 30 s.\n"},
		{"negative", true, 30 * s, "-1", 30 * s, "The request timed out after 30 s.\n"},
		{"a unit", true, 30 * s, "2s", 30 * s, "The request timed out after 30 s.\n"},
		{"not a number", true, 30 * s, "NaN", 30 * s, "The request timed out after 30 s.\n"},
		{"too large", true, 30 * s, "1e300", 30 * s, "The request timed out after 30 s.\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cause error
				h := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					cause = context.Cause(r.Context())
				}), timeout.Config{Total: tc.total})
				h.RequestTimeout = tc.take
				r := httptest.NewRequestWithContext(context.Background(), "GET", "/", nil)
				r.Header.Set("Request-Timeout", tc.header)
				w, begun := httptest.NewRecorder(), time.Now()
				h.ServeHTTP(w, r)
				if took := time.Since(begun); took != tc.want || w.Body.String() != tc.body || w.Code != http.StatusServiceUnavailable {
					t.Errorf("after %v: %d, %q, want after %v %q", took, w.Code, w.Body, tc.want, tc.body)
				}
				if kind := timeout.ExitCode(cause); kind != 124 {
					t.Errorf("the cause %v has the exit code %d", cause, kind)
				}
			})
		})
	}
}

// A client says what is left to the server, which stops at that instant. SPEC 18.6.
func TestTransport(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name  string
		total time.Duration // of the execution that sends the request, from its start
		late  time.Duration // then it waits
		limit time.Duration // deadline of the request's context, from when it is sent
		set   string        // by the caller
		want  []string
	}{
		{name: "nothing", want: nil},
		{name: "a deadline", limit: 2500 * time.Millisecond, want: []string{"2.5"}},
		{name: "what is left of a total", total: 10 * s, late: 4 * s, want: []string{"6"}},
		{name: "the first of both", total: 10 * s, late: 4 * s, limit: 7 * s, want: []string{"6"}},
		{name: "less than a millisecond", limit: time.Microsecond, want: []string{"0.001"}},
		{name: "finer than a millisecond", limit: s + 999*time.Microsecond, want: []string{"1"}},
		{name: "set by hand", limit: 2 * s, set: "1", want: []string{"1"}},
		{name: "passed", limit: -1, want: nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					got = r.Header["Request-Timeout"]
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
				})
				err := timeout.Run(t.Context(), func(ctx context.Context) error {
					time.Sleep(tc.late)
					if tc.limit != 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tc.limit)
						defer cancel()
					}
					r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
					if tc.set != "" {
						r.Header.Set("Request-Timeout", tc.set)
					}
					before := r.Header.Clone()
					_, err := (&httptimeout.Transport{Base: base}).RoundTrip(r)
					if d := cmp.Diff(before, r.Header); d != "" {
						t.Errorf("the caller's request was changed:\n%s", d)
					}
					return err
				}, timeout.Config{Total: tc.total})
				if d := cmp.Diff(tc.want, got); d != "" || err != nil {
					t.Errorf("%v\n%s", err, d)
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server behind another one has what is left of the first one's client. SPEC 18.6.
func TestRequestTimeoutThroughServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		inner := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			left, _ = timeout.Remaining(r.Context())
		}), timeout.Config{Total: time.Hour})
		inner.RequestTimeout = true
		client := &http.Client{Transport: &httptimeout.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			inner.ServeHTTP(w, r.WithContext(context.Background()))
			return w.Result(), nil
		})}}
		outer := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			request, err := http.NewRequestWithContext(r.Context(), "GET", "http://inner/", nil)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := client.Do(request)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		}), timeout.Config{Total: time.Minute})
		outer.RequestTimeout = true
		r := httptest.NewRequestWithContext(context.Background(), "GET", "/", nil)
		r.Header.Set("Request-Timeout", "10")
		outer.ServeHTTP(httptest.NewRecorder(), r)
		if left != 7*time.Second {
			t.Errorf("%v left, want 7s", left)
		}
	})
}
