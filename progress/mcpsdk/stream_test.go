package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/stream"
)

// streamSilence is the idle limit of the notification streams here; the servers say nothing.
const streamSilence = 100 * time.Millisecond

// sseSilence is that of the old transport, over whose stream the session is made too.
const sseSilence = 5 * time.Second

// A streamLine counts the notification streams of a server.
type streamLine struct {
	mu     sync.Mutex
	h      http.Handler
	opened int
	now    int
}

func (l *streamLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		l.count(1, 1)
		defer l.count(0, -1)
	}
	l.mu.Lock()
	h := l.h
	l.mu.Unlock()
	h.ServeHTTP(w, r)
}

func (l *streamLine) count(opened, now int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened += opened
	l.now += now
}

func (l *streamLine) state() (opened, now int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened, l.now
}

// streamHeard is what a client has been told by progress notifications.
type streamHeard struct {
	mu  sync.Mutex
	all []float64
}

func (h *streamHeard) add(v float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, v)
}

func (h *streamHeard) values() []float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

func (h *streamHeard) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "client"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			h.add(req.Params.Progress)
		},
	})
}

func streamServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "server"}, nil)
	type in struct{}
	mcp.AddTool(s, &mcp.Tool{Name: "sleep"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
		time.Sleep(5 * streamSilence)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "slept"}}}, nil, nil
	})
	return s
}

// notify tells all clients, on their notification streams.
func streamNotify(t *testing.T, s *mcp.Server, v float64) {
	t.Helper()
	for ss := range s.Sessions() {
		err := ss.NotifyProgress(context.Background(), &mcp.ProgressNotificationParams{ProgressToken: "news", Progress: v})
		if err != nil {
			t.Logf("notify %v: %v", v, err)
		}
	}
}

func streamUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("still not %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// streamLeaks checks that the test leaves no goroutine behind.
func streamLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		streamUntil(t, "without goroutines that are left", func() bool { return runtime.NumGoroutine() <= before })
	})
}

func streamListen(t *testing.T, h http.Handler) (*httptest.Server, *streamLine, *http.Client) {
	t.Helper()
	l := &streamLine{h: h}
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	return srv, l, &http.Client{Transport: &stream.Notifications{Idle: streamSilence}}
}

// SPEC 9.1: a quiet server's notification stream is closed and reopened more often than
// the SDK by itself would bear, calls go on beside it, and what is said then is heard.
func TestNotificationStream(t *testing.T) {
	streamLeaks(t)
	for _, tc := range []struct {
		name     string
		store    mcp.EventStore
		reopened int
	}{{"events are kept", mcp.NewMemoryEventStore(nil), 2}, {"events are not kept", nil, 7}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := streamServer()
			srv, l, hc := streamListen(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
				&mcp.StreamableHTTPOptions{EventStore: tc.store}))
			var h streamHeard
			session, err := h.client().Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: hc}, nil)
			if err != nil {
				t.Fatal(err)
			}
			streamUntil(t, "reopened often enough", func() bool {
				res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "sleep"})
				if err != nil || res.IsError {
					t.Fatal(res, err)
				}
				opened, _ := l.state()
				return opened > tc.reopened
			})
			said := 0
			for i := range 3 {
				streamUntil(t, "heard", func() bool {
					// A message is lost if nobody listens and events are not kept.
					if said == i || tc.store == nil {
						said++
						streamNotify(t, s, float64(said))
					}
					time.Sleep(streamSilence / 2)
					return len(h.values()) > i
				})
			}
			before, _ := l.state() // whatever would come twice comes with the next streams
			streamUntil(t, "reopened", func() bool { opened, _ := l.state(); return opened >= before+2 })
			got := h.values()
			if tc.store != nil && !slices.Equal(got, []float64{1, 2, 3}) {
				t.Errorf("heard %v, want each once", got)
			}
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("heard %v, want none twice", got)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
			streamUntil(t, "closed", func() bool { _, now := l.state(); return now == 0 })
		})
	}
}

// A connection that breaks is one more reason to reopen, and a lost session is the SDK's
// to know.
func TestNotificationStreamBreaks(t *testing.T) {
	streamLeaks(t)
	s := streamServer()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	srv, l, hc := streamListen(t, h)
	var got streamHeard
	session, err := got.client().Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv.CloseClientConnections()
	streamNotify(t, s, 1)
	streamUntil(t, "heard", func() bool { return len(got.values()) == 1 })

	l.mu.Lock()
	l.h = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return streamServer() }, nil) // restarted
	l.mu.Unlock()
	over := make(chan error, 1)
	go func() { over <- session.Wait() }()
	select {
	case err := <-over:
		if err == nil {
			t.Error("the session is over without an error")
		}
	case <-time.After(time.Minute):
		t.Error("the session is not over")
	}
	_ = session.Close()
	for ss := range s.Sessions() {
		_ = ss.Close()
	}
}

// The old transport's stream is the session: when it goes silent, both are over.
func TestSSEStream(t *testing.T) {
	streamLeaks(t)
	s := streamServer()
	srv, l, _ := streamListen(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	hc := &http.Client{Transport: &stream.Notifications{Idle: sseSilence}}
	var h streamHeard
	session, err := h.client().Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: srv.URL, HTTPClient: hc}, nil)
	if err != nil {
		t.Fatal(err)
	}
	streamNotify(t, s, 1)
	streamUntil(t, "heard", func() bool { return len(h.values()) == 1 })
	over := make(chan error, 1)
	go func() { over <- session.Wait() }()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("the session is not over")
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "sleep"}); !errors.Is(err, mcp.ErrConnectionClosed) {
		t.Errorf("a call returns %v", err)
	}
	time.Sleep(7 * streamSilence) // it would have been reopened by now
	if opened, now := l.state(); opened != 1 || now != 0 {
		t.Errorf("%d streams opened, %d open", opened, now)
	}
	_ = session.Close()
}

// A session that is closed as usual has lost nothing.
func TestCloseIsNoLoss(t *testing.T) {
	streamLeaks(t)
	for range 20 { // which of the two ends is seen first is a matter of chance
		s := streamServer()
		var lost atomic.Int32
		l := &streamLine{h: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)}
		srv := httptest.NewServer(l)
		hc := &http.Client{Transport: &stream.Notifications{Hooks: stream.Hooks{Lost: func(context.Context, stream.Outage) { lost.Add(1) }}}}
		session, err := new(streamHeard).client().Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: hc},
			&mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
		if err != nil {
			t.Fatal(err)
		}
		streamUntil(t, "listening", func() bool { _, now := l.state(); return now == 1 })
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
		if n := lost.Load(); n != 0 {
			t.Fatalf("lost %d times", n)
		}
	}
}
