package stream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/stream"
)

// A sent is a ResponseWriter that records what is flushed, and when.
type sent struct {
	header http.Header
	mu     sync.Mutex
	start  time.Time
	held   strings.Builder
	log    []string
	fail   bool
}

func (s *sent) Header() http.Header { return s.header }
func (s *sent) WriteHeader(int)     {}

func (s *sent) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		return 0, io.ErrClosedPipe
	}
	return s.held.Write(p)
}

func (s *sent) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.Len() > 0 {
		s.log = append(s.log, fmt.Sprintf("%v %q", time.Since(s.start), s.held.String()))
		s.held.Reset()
	}
}

// SPEC 9.4: a quiet notification stream carries a comment at each interval, exactly, between events,
// and nothing else does.
func TestKeepAlive(t *testing.T) {
	const every = 15 * time.Second
	say := func(w http.ResponseWriter, parts ...any) {
		for _, part := range parts {
			switch part := part.(type) {
			case time.Duration:
				time.Sleep(part)
			case string:
				_, _ = io.WriteString(w, part)
				w.(http.Flusher).Flush()
			}
		}
	}
	for _, tc := range []struct {
		name   string
		method string
		header string // Mcp-Method
		kind   string
		status int
		every  time.Duration
		parts  []any
		want   []string
	}{
		{"quiet", "GET", "", "text/event-stream", 200, 0, []any{2*every + 1}, []string{`15s ": keep-alive\n\n"`, `30s ": keep-alive\n\n"`}},
		{"quiet to just before the interval", "GET", "", "text/event-stream; charset=utf-8", 200, 0, []any{every - 1}, nil},
		{
			"an event puts it off", "GET", "", "text/event-stream", 200, 0, []any{every - 1, "data: a\n\n", every + 1},
			[]string{`14.999999999s "data: a\n\n"`, `29.999999999s ": keep-alive\n\n"`},
		},
		{
			"never within an event", "GET", "", "text/event-stream", 200, 0, []any{"data: a\n", 2 * every, "\n", every + 1},
			[]string{`0s "data: a\n"`, `30s "\n"`, `45s ": keep-alive\n\n"`},
		},
		{"lines end in CRLF", "GET", "", "text/event-stream", 200, every, []any{"data: a\r\n\r\n", every + 1}, []string{`0s "data: a\r\n\r\n"`, `15s ": keep-alive\n\n"`}},
		{"an interval", "GET", "", "text/event-stream", 200, time.Second, []any{time.Second + 1}, []string{`1s ": keep-alive\n\n"`}},
		{"none", "GET", "", "text/event-stream", 200, -1, []any{9 * every}, nil},
		{"subscriptions/listen", "POST", "subscriptions/listen", "text/event-stream", 200, 0, []any{every + 1}, []string{`15s ": keep-alive\n\n"`}},
		{"a call", "POST", "tools/call", "text/event-stream", 200, 0, []any{9 * every}, nil},
		{"a call of an older client", "POST", "", "text/event-stream", 200, 0, []any{9 * every}, nil},
		{"no event stream", "GET", "", "text/plain", 200, 0, []any{9 * every}, nil},
		{"a refusal", "GET", "", "text/event-stream", 409, 0, []any{9 * every}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &sent{header: http.Header{}, start: time.Now()}
				req := get(t.Context())
				req.Method = tc.method
				if tc.header != "" {
					req.Header.Set("Mcp-Method", tc.header)
				}
				stream.KeepAlive(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", tc.kind)
					w.WriteHeader(tc.status)
					say(w, tc.parts...)
				}), tc.every).ServeHTTP(w, req)
				time.Sleep(9 * every) // nothing comes after the handler has returned
				if diff := cmp.Diff(tc.want, w.log); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A header that has not been sent stays the handler's, and a comment that fails is the last.
func TestKeepAliveTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &sent{header: http.Header{}, start: time.Now()}
		stream.KeepAlive(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			time.Sleep(time.Minute)
			rw.(http.Flusher).Flush()
			time.Sleep(16 * time.Second)
			w.mu.Lock()
			w.fail = true
			w.mu.Unlock()
			time.Sleep(time.Minute)
		}), 0).ServeHTTP(w, get(t.Context()))
		if diff := cmp.Diff([]string{`1m15s ": keep-alive\n\n"`}, w.log); diff != "" {
			t.Error(diff)
		}
	})
}

// SPEC 2.13: an interval of nanoseconds is one of a millisecond.
func TestKeepAliveOfNanoseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &sent{header: http.Header{"Content-Type": {"text/event-stream"}}, start: time.Now()}
		stream.KeepAlive(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			time.Sleep(2*time.Millisecond + time.Microsecond)
		}), 10).ServeHTTP(w, &http.Request{Method: http.MethodGet})
		if len(w.log) != 2 {
			t.Errorf("%d comments in 2 ms", len(w.log))
		}
	})
}
