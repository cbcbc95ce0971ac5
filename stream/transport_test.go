package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// after delays the header of next by d.
func after(d time.Duration, next answer) answer {
	return func(s *server, req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return next(s, req)
		case <-req.Context().Done():
			return nil, errGivenUp
		}
	}
}

// SPEC 9.1: the limit is exact for the header and for the body.
func TestTransport(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer answer
		got    string
		err    error
		at     time.Duration
	}{
		{"header in time, and the rest", after(limit-1, typed(200, "text/plain", limit-1, "a", limit-1, "b")), "ab", nil, 3*limit - 3},
		{"header late", after(limit+1, status(200)), "", timeout.ErrIdle, limit},
		{"no header", deaf, "", timeout.ErrIdle, limit},
		{"body late", after(limit-1, typed(200, "text/plain", limit+1, "a")), "", timeout.ErrIdle, 2*limit - 1},
		{"body that stops", typed(200, "text/plain", "a", limit-1, "b", silence), "ab", timeout.ErrIdle, 2*limit - 1},
		{"body that breaks", typed(200, "text/plain", "a", io.ErrUnexpectedEOF), "a", io.ErrUnexpectedEOF, 0},
		{"refused", refuses, "", errRefused, 0},
		{"an event stream is not reopened", events("data: a\n\n"), "data: a\n\n", nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{script: []answer{tc.answer}}
				client := &http.Client{Transport: &stream.Transport{Base: s, Idle: limit}}
				start := time.Now()
				got, err := fetch(client, get(context.Background()))
				if got != tc.got || !errors.Is(err, tc.err) || time.Since(start) != tc.at || len(s.asked) != 1 || s.open != 0 {
					t.Errorf("%q, %v after %v, %d requests, %d bodies open", got, err, time.Since(start), len(s.asked), s.open)
				}
			})
		})
	}
}

// Guarantee 2: the limit rests until the body is read.
func TestTransportSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{script: []answer{typed(200, "text/plain", limit-1, "a")}}
		resp, err := (&stream.Transport{Base: s, Idle: limit}).RoundTrip(get(context.Background()))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * limit)
		if got, err := io.ReadAll(resp.Body); string(got) != "a" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

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
		"refused": {refuses}, "no header": {deaf}, "too large": {events("data:" + strings.Repeat("x", stream.MaxEvent))},
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

func fetch(client *http.Client, req *http.Request) (string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	return string(all), err
}

// SPEC 2.13: the zero value of both types has the idle limit of timeout.UnboundedTotal.
func TestZeroValues(t *testing.T) {
	for name, rt := range map[string]func(http.RoundTripper) http.RoundTripper{
		"Transport":     func(base http.RoundTripper) http.RoundTripper { return &stream.Transport{Base: base} },
		"Notifications": func(base http.RoundTripper) http.RoundTripper { return &stream.Notifications{Base: base} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := rt(&server{script: []answer{deaf}}).RoundTrip(get(context.Background()))
				if e := stopped(t, err); e.Kind != timeout.KindIdle || time.Since(start) != 2*time.Minute {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// SPEC 2.13: a negative limit means none.
func TestNegativeIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
		defer cancel()
		start := time.Now()
		_, err := (&stream.Transport{Base: &server{script: []answer{deaf}}, Idle: -1}).RoundTrip(get(ctx))
		if after := time.Since(start); !errors.Is(err, timeout.ErrTotal) || after != 1000*time.Hour {
			t.Errorf("%v after %v", err, after)
		}
	})
}

// The caller's own limits apply as usual.
func TestTransportContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, script := range [][]answer{{deaf}, {typed(200, "text/plain", "a", silence)}} {
			client := &http.Client{Transport: &stream.Transport{Base: &server{script: script}, Idle: limit}, Timeout: limit / 2}
			start := time.Now()
			_, err := fetch(client, get(context.Background()))
			var e interface{ Timeout() bool }
			if !errors.As(err, &e) || !e.Timeout() || errors.Is(err, timeout.ErrIdle) || time.Since(start) != limit/2 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		for _, script := range [][]answer{{deaf}, {typed(200, "text/plain", "a", silence)}} {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(limit/2, cancel)
			start := time.Now()
			_, err := fetch(&http.Client{Transport: &stream.Transport{Base: &server{script: script}, Idle: limit}}, get(ctx))
			if !errors.Is(err, context.Canceled) || time.Since(start) != limit/2 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
	})
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

// The options are those of timeout.Run.
func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []time.Duration
		hooks := timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
			seen = append(seen, s.Elapsed)
		}})
		s := &server{script: []answer{events("data: a\n\n", silence), events("data: b\n\n", silence)}}
		rt := &stream.Notifications{Base: s, Options: []timeout.Option{timeout.Config{Idle: time.Second}, hooks}}
		_, _ = fetch(&http.Client{Transport: rt}, get(context.Background()))
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{time.Second, time.Second, 0}, seen); diff != "" {
			t.Error(diff)
		}
	})
}
