package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/stream"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A register is a context that counts the functions registered with it.
type register struct {
	context.Context
	done chan struct{}
	mu   sync.Mutex
	n    int
}

func (r *register) Done() <-chan struct{} { return r.done }

func (r *register) AfterFunc(func()) func() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return sync.OnceValue(func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n--
		return true
	})
}

// Guarantee 8: nothing stays registered with the caller's context, which may outlive many streams.
func TestNothingIsLeft(t *testing.T) {
	for name, script := range map[string][]answer{
		"end": {events("data: a\n\n")}, "silence": {events(silence)}, "status": {status(404)},
		"refused": {refuses}, "no header": {deaf}, "too large": {events("data:" + strings.Repeat("x", 16<<20))},
	} {
		for _, notify := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", notify), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := &register{Context: context.Background(), done: make(chan struct{})}
					s := &server{script: slices.Clone(script)}
					var rt http.RoundTripper = &stream.Transport{Base: s, Idle: limit}
					if notify {
						rt = &stream.Notifications{Base: s, Idle: limit}
					}
					_, _ = fetch(&http.Client{Transport: rt}, get(ctx))
					synctest.Wait()
					if ctx.n != 0 || s.open != 0 {
						t.Errorf("%d things hang on the context, %d bodies are open", ctx.n, s.open)
					}
				})
			})
		}
	}
}

// SPEC 2.13: the zero value of both types has the idle limit of timeout.UnboundedTotal, and a negative one is none.
func TestLimits(t *testing.T) {
	base := func() http.RoundTripper { return &server{script: []answer{deaf}} }
	for _, tc := range []struct {
		name string
		rt   http.RoundTripper
		want error
		at   time.Duration
	}{
		{"Transport", &stream.Transport{Base: base()}, timeout.ErrIdle, 2 * time.Minute},
		{"Notifications", &stream.Notifications{Base: base()}, timeout.ErrIdle, 2 * time.Minute},
		{"Transport without a limit", &stream.Transport{Base: base(), Idle: -1}, timeout.ErrTotal, 1000 * time.Hour},
		{"Notifications without a limit", &stream.Notifications{Base: base(), Idle: -1}, context.DeadlineExceeded, 1000 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
				defer cancel()
				start := time.Now()
				if _, err := tc.rt.RoundTrip(get(ctx)); !errors.Is(err, tc.want) || time.Since(start) != tc.at {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// The caller's own limits apply as usual, during the wait for the first event too.
func TestTransportContext(t *testing.T) {
	for _, first := range []time.Duration{0, limit} {
		for name, a := range map[string]answer{"no header": deaf, "no end": typed(200, "text/plain", "a", silence)} {
			t.Run(fmt.Sprint(name, ", first ", first), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{script: []answer{a, a}}
					client := &http.Client{Transport: &stream.Transport{Base: s, Idle: limit, First: first}, Timeout: limit / 2}
					start := time.Now()
					_, err := fetch(client, get(context.Background()))
					var e interface{ Timeout() bool }
					if !errors.As(err, &e) || !e.Timeout() || errors.Is(err, timeout.ErrIdle) || time.Since(start) != limit/2 {
						t.Errorf("%v after %v", err, time.Since(start))
					}
					ctx, cancel := context.WithCancel(context.Background())
					time.AfterFunc(limit/4, cancel)
					if _, err := fetch(client, get(ctx)); !errors.Is(err, context.Canceled) || time.Since(start) != limit*3/4 {
						t.Errorf("%v after %v", err, time.Since(start))
					}
				})
			})
		}
	}
}

type closer struct {
	io.Reader
	closed int
}

func (c *closer) Close() error { c.closed++; return nil }

// Guarantee 9: the request is not changed, and a request body that is being sent is a sign of life.
func TestTransportRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &closer{Reader: io.LimitReader(says(limit-1, limit-1, limit-1), 3)}
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://server.test/", up)
		req.Header.Set("X", "1")
		before := req.Clone(context.Background())
		rt := &stream.Transport{Idle: limit, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r == req || r.Header.Get("X") != "1" || r.Body == nil {
				t.Error("not a copy of the request")
			}
			all, err := io.ReadAll(r.Body)
			if string(all) != "xxx" || err != nil {
				t.Errorf("%q, %v", all, err)
			}
			_ = r.Body.Close()
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})}
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.Request != req || resp.Body != http.NoBody || up.closed != 1 {
			t.Errorf("%v, %v, closed %d times", resp, err, up.closed)
		}
		if req.Body != up || req.Context() != before.Context() || cmp.Diff(before.Header, req.Header) != "" {
			t.Error("the request has changed")
		}
	})
	synctest.Test(t, func(t *testing.T) { // sent again, as net/http does on a new connection
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://server.test/", strings.NewReader("x"))
		req.GetBody = func() (io.ReadCloser, error) { return says(limit-1, limit-1), nil }
		rt := &stream.Transport{Idle: limit, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			again, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			defer again.Close()
			_, _ = io.CopyN(io.Discard, again, 2)
			return nil, errRefused
		})}
		if _, err := rt.RoundTrip(req); err != errRefused {
			t.Errorf("%v, want %v", err, errRefused)
		}
		req.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }
		if _, err := rt.RoundTrip(req); err != io.ErrClosedPipe {
			t.Errorf("%v, want %v", err, io.ErrClosedPipe)
		}
	})
	synctest.Test(t, func(t *testing.T) { // stopped before it begins
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		up := &closer{Reader: strings.NewReader("x")}
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://server.test/", up)
		_, err := (&stream.Transport{Base: roundTrip(nil), Idle: limit}).RoundTrip(req)
		if !errors.Is(err, context.Canceled) || up.closed != 1 {
			t.Errorf("%v, closed %d times", err, up.closed)
		}
	})
}

// Guarantee 4: the enclosing execution gets a beat for the header and for each chunk in either
// direction.
func TestTransportBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := timeout.Run(context.Background(), func(ctx context.Context) error {
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, r.Body)
				return typed(200, "text/plain", "a", "b")(&server{}, r)
			})
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://server.test/", strings.NewReader("x"))
			_, err := fetch(&http.Client{Transport: &stream.Transport{Base: base, Idle: limit}}, req)
			if n := heartbeat.FromContext(ctx).Count(); n != 4 {
				t.Errorf("%d beats, want 4", n)
			}
			return err
		}, timeout.Config{})
		if err != nil {
			t.Error(err)
		}
	})
}

type idler struct {
	http.RoundTripper
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	base := new(idler)
	(&http.Client{Transport: &stream.Transport{Base: base}}).CloseIdleConnections()
	(&http.Client{Transport: &stream.Notifications{Base: base}}).CloseIdleConnections()
	if base.closed != 2 {
		t.Errorf("closed %d times, want 2", base.closed)
	}
	(&stream.Transport{Base: roundTrip(nil)}).CloseIdleConnections() // a base without the method is ignored
}

// An exchange has the name and the logger of its transport.
func TestNameAndLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &server{script: []answer{deaf, deaf}}
		_, err := (&stream.Transport{Base: s, Name: "model", Logger: slog.New(slog.NewTextHandler(&log, nil))}).RoundTrip(get(t.Context()))
		_, other := (&stream.Notifications{Base: s, Name: "news"}).RoundTrip(get(t.Context()))
		if stopped(t, err).Tool != "model" || stopped(t, other).Tool != "news" || !strings.Contains(log.String(), "tool=model") {
			t.Errorf("%+v, %+v, log %q", err, other, &log)
		}
	})
}
