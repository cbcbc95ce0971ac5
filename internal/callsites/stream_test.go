package callsites_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/stream"
)

// A silent body says nothing until it is closed.
type silent struct {
	closed   chan struct{}
	once     *sync.Once
	at       func(Given, ...func()) // called by Close
	calls    []func()
	released <-chan struct{}
}

func newSilent(s *Site, at func(Given, ...func())) *silent {
	return &silent{closed: make(chan struct{}), once: new(sync.Once), at: at, released: s.Released()}
}

func (b *silent) Read([]byte) (int, error) {
	select {
	case <-b.closed:
	case <-b.released:
	}
	return 0, io.ErrClosedPipe
}

func (b *silent) Close() error {
	b.once.Do(func() { close(b.closed) })
	if b.at != nil {
		b.at(nil, b.calls...)
	}
	return nil
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func eventStream(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
}

// exchange sends a request through a transport and reads its body.
func exchange(s *Site, t http.RoundTripper) {
	ctx, cancel := context.WithTimeout(context.Background(), idle)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://h/p", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := t.RoundTrip(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
}

// lossy is a client of notifications whose stream is lost at once, and then cannot be reopened or can.
func lossy(s *Site, again bool, set func(*stream.Notifications)) {
	tries := 0
	n := &stream.Notifications{Idle: idle, GiveUp: idle, Base: tripper(func(*http.Request) (*http.Response, error) {
		switch tries++; {
		case tries == 1:
			return eventStream(io.NopCloser(strings.NewReader("data: x\n\n"))), nil
		case again && tries == 2:
			return eventStream(newSilent(s, nil)), nil
		}
		return nil, errors.New("refused")
	})}
	set(n)
	req, _ := http.NewRequest(http.MethodGet, "http://h/p", nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := n.RoundTrip(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}

// A responseWriter is one whose methods are the caller's code.
type responseWriter struct {
	header       http.Header
	write, flush func()
}

func (w *responseWriter) Header() http.Header         { return w.header }
func (w *responseWriter) WriteHeader(int)             {}
func (w *responseWriter) Write(p []byte) (int, error) { w.write(); return len(p), nil }
func (w *responseWriter) Flush()                      { w.flush() }

// keptAlive serves a stream that is quiet for a second, with a comment every 100 ms.
func keptAlive(write, flush func(comment bool)) {
	var comment atomic.Bool
	w := &responseWriter{header: http.Header{}, write: func() { write(comment.Load()) }, flush: func() { flush(comment.Load()) }}
	h := stream.KeepAlive(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		comment.Store(true)
		time.Sleep(time.Second)
	}), 100*time.Millisecond)
	req, _ := http.NewRequest(http.MethodGet, "http://h/p", nil)
	h.ServeHTTP(w, req)
}

// step calls the site's code at the steps of an outage that match.
func step(s *Site, match func(*stream.OutageError) bool) func(context.Context, *stream.OutageError) {
	return func(ctx context.Context, o *stream.OutageError) {
		if match(o) {
			s.Hit(ctx)
		}
	}
}

func init() {
	none := func(bool) {}
	add(Table{
		"stream.Body(rc)/read": {Waits: "Read and Close wait for rc", Panics: true, Within: idle, Do: func(s *Site) {
			body := stream.Body(context.Background(), struct {
				io.Reader
				io.Closer
			}{code{s, nil}, io.NopCloser(nil)}, idle)
			defer body.Close()
			_, _ = body.Read(make([]byte, 1))
		}},
		"stream.Body(rc)/close at the limit": {Within: idle + time.Second, Do: func(s *Site) {
			rc := newSilent(s, s.Hit)
			body := stream.Body(context.Background(), rc, idle)
			rc.calls = []func(){func() { _ = body.Close() }}
			_, err := body.Read(make([]byte, 1))
			if !errors.As(err, new(*stream.SilenceError)) {
				s.Error(err)
			}
			_ = body.Close()
		}},
		"stream.Body(rc)/close": {Waits: "Read and Close wait for rc", Panics: true, Within: idle, Do: func(s *Site) {
			rc := newSilent(s, s.Hit)
			body := stream.Body(context.Background(), rc, idle)
			rc.calls = []func(){func() { _ = body.Close() }}
			_ = body.Close()
		}},
		"stream.Transport.Base": {Waits: "RoundTrip waits for it", Panics: true, Within: idle, Do: func(s *Site) {
			exchange(s, &stream.Transport{Idle: idle, Base: tripper(func(*http.Request) (*http.Response, error) {
				s.Hit(nil)
				return eventStream(newSilent(s, nil)), nil
			})})
		}},
		"stream.Transport.Life": {Waits: "which waits for it", Panics: true, Within: idle, Do: func(s *Site) {
			exchange(s, &stream.Transport{
				Idle: idle, Base: tripper(func(*http.Request) (*http.Response, error) {
					return eventStream(io.NopCloser(strings.NewReader("data: x\n\n"))), nil
				}),
				Life: func(stream.Event) bool { s.Hit(nil); return true },
			})
		}},
		"stream.Transport.Logger": {Within: idle + 7*time.Second, Do: func(s *Site) {
			exchange(s, &stream.Transport{Idle: idle, Logger: logger(s), Base: tripper(func(*http.Request) (*http.Response, error) {
				return eventStream(newSilent(s, nil)), nil
			})})
		}},
		"stream.Transport.RoundTrip(req)":     {Never: "its body and its context are Base's and the engine's"},
		"stream.Notifications.RoundTrip(req)": {Never: "its body and its context are Base's and the engine's"},
		"stream.Notifications.Base": {Waits: "wait for it", Panics: true, Within: idle, Do: func(s *Site) {
			exchange(s, &stream.Notifications{Idle: idle, Base: tripper(func(*http.Request) (*http.Response, error) {
				s.Hit(nil)
				return nil, errors.New("refused")
			})})
		}},
		"stream.Notifications.Report/lost": {Waits: "waits for it", Panics: true, Within: 3 * idle, Do: func(s *Site) {
			lossy(s, false, func(n *stream.Notifications) {
				n.Report = step(s, func(o *stream.OutageError) bool { return o.Attempts == 0 })
			})
		}},
		"stream.Notifications.Report/failed": {Waits: "waits for it", Panics: true, Within: 3 * idle, Do: func(s *Site) {
			lossy(s, false, func(n *stream.Notifications) {
				n.Report = step(s, func(o *stream.OutageError) bool { return o.Err != nil })
			})
		}},
		"stream.Notifications.Report/reopened": {Waits: "waits for it", Panics: true, Within: 5 * idle, Do: func(s *Site) {
			lossy(s, true, func(n *stream.Notifications) {
				n.Report = step(s, func(o *stream.OutageError) bool { return o.Attempts > 0 && o.Err == nil })
			})
		}},
		"stream.Notifications.Report/close": {Within: idle, Do: func(s *Site) {
			n := &stream.Notifications{Base: tripper(func(*http.Request) (*http.Response, error) {
				return eventStream(io.NopCloser(strings.NewReader(""))), nil
			})}
			in := make(chan struct{})
			n.Report = func(ctx context.Context, _ *stream.OutageError) { close(in); s.Hit(ctx) }
			req, _ := http.NewRequest(http.MethodGet, "http://h/p", nil)
			req.Header.Set("Accept", "text/event-stream")
			resp, _ := n.RoundTrip(req)
			go func() {
				defer func() { _ = recover() }()
				_, _ = resp.Body.Read(make([]byte, 1))
			}()
			<-in
			_ = resp.Body.Close()
		}},
		"stream.Notifications.Logger": {Waits: "waits until it has written them", Panics: true, Within: 3 * idle, Do: func(s *Site) {
			lossy(s, false, func(n *stream.Notifications) { n.Logger = slog.New(slog.NewTextHandler(code{s, nil}, nil)) })
		}},
		"stream.KeepAlive(h)": {Waits: "The handler waits for h", Panics: true, Do: func(s *Site) {
			h := stream.KeepAlive(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.Hit(nil) }), 0)
			req, _ := http.NewRequest(http.MethodGet, "http://h/p", nil)
			h.ServeHTTP(&responseWriter{header: http.Header{}}, req)
		}},
		"stream.KeepAlive(h)/write a comment": {Waits: "a comment that is being written", Within: time.Second, Do: func(s *Site) {
			keptAlive(func(bool) { s.Hit(nil) }, none)
		}},
		"stream.KeepAlive(h)/flush a comment": {Waits: "a comment that is being written", Within: time.Second, Do: func(s *Site) {
			keptAlive(none, func(comment bool) {
				if comment {
					s.Hit(nil)
				}
			})
		}},
		"stream.Events(r)": {Waits: "which waits for it", Panics: true, Do: func(s *Site) {
			for range stream.Events(code{s, nil}, 1<<10) {
			}
		}},
		"stream.OutageError.Cause": {Never: "the logger and the hooks get it as it is"},
		"stream.OutageError.Err":   {Never: "the logger and the hooks get it as it is"},
		"stream.ReopenError.Err":   {Never: "its text is made where the caller asks for it"},
	})
}
