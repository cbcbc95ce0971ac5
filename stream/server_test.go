package stream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/stream"
)

// A server is an http.RoundTripper in a bubble that answers by a script and records the requests
// and their times. After the script it answers 204.
type server struct {
	script []answer

	mu     sync.Mutex
	start  time.Time
	asked  []time.Duration // time since the previous request
	lastID []string
	open   int // number of unclosed bodies
}

type answer func(s *server, req *http.Request) (*http.Response, error)

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if s.start.IsZero() {
		s.start = time.Now()
	}
	s.asked = append(s.asked, time.Since(s.start))
	s.start = time.Now()
	s.lastID = append(s.lastID, req.Header.Get("Last-Event-ID"))
	next := status(http.StatusNoContent)
	if len(s.script) > 0 {
		next, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	return next(s, req)
}

var (
	errRefused = errors.New("connection refused")
	errGivenUp = errors.New("given up") // what a base may return instead of the cause of its context
)

// refuses acts like an unreachable server.
func refuses(*server, *http.Request) (*http.Response, error) { return nil, errRefused }

// deaf never answers.
func deaf(_ *server, req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, errGivenUp
}

func status(code int) answer { return typed(code, "text/plain", "no") }

// silence, as a part of a body, lasts until the body is closed.
const silence = time.Duration(1<<63 - 1)

// events answers with an event stream of strings, pauses and errors, and then ends it.
func events(parts ...any) answer { return typed(http.StatusOK, "text/event-stream", parts...) }

func typed(code int, kind string, parts ...any) answer {
	return func(s *server, req *http.Request) (*http.Response, error) {
		b := &scripted{server: s, parts: slices.Clone(parts), closed: make(chan struct{}), ctx: req.Context()}
		s.mu.Lock()
		s.open++
		s.mu.Unlock()
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {kind}}, Body: b, Request: req, ContentLength: -1,
		}, nil
	}
}

type scripted struct {
	server *server
	parts  []any
	ctx    context.Context
	once   sync.Once
	closed chan struct{}
}

func (b *scripted) Read(p []byte) (int, error) {
	for len(b.parts) > 0 {
		switch part := b.parts[0].(type) {
		case time.Duration:
			select {
			case <-time.After(part):
			case <-b.closed:
				return 0, http.ErrBodyReadAfterClose
			case <-b.ctx.Done():
				return 0, context.Cause(b.ctx)
			}
		case string:
			n := copy(p, part)
			if b.parts[0] = part[n:]; n == len(part) {
				b.parts = b.parts[1:]
			}
			return n, nil
		case error:
			return 0, part
		}
		b.parts = b.parts[1:]
	}
	return 0, io.EOF
}

func (b *scripted) Close() error {
	b.once.Do(func() {
		close(b.closed)
		b.server.mu.Lock()
		b.server.open--
		b.server.mu.Unlock()
	})
	return nil
}

// listen opens the stream of s.
func listen(t *testing.T, ctx context.Context, s *server) io.ReadCloser {
	t.Helper()
	resp, err := (&http.Client{Transport: &stream.Notifications{Base: s, Idle: limit}}).Do(get(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

func get(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server.test/mcp", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	return req
}

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

// fetch reads the answer to its end.
func fetch(client *http.Client, req *http.Request) (string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	return string(all), err
}
