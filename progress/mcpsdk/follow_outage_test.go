package mcpsdk_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A gateway is an HTTP server in front of one with tasks, that fails on demand.
type gateway struct {
	fail  func(w http.ResponseWriter)
	h     http.Handler
	mu    sync.Mutex
	more  *sync.Cond     // for a request
	times map[string]int // how often the next requests of a method are still to fail
	seen  map[string]int // the requests, by method
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Header.Get("Mcp-Method")
	g.mu.Lock()
	g.seen[method]++
	g.more.Broadcast()
	fails := g.times[method] > 0
	if fails {
		g.times[method]--
	}
	g.mu.Unlock()
	if fails {
		g.fail(w)
		return
	}
	g.h.ServeHTTP(w, r)
}

func (g *gateway) count(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[method]
}

// await waits for the nth request of a method.
func (g *gateway) await(method string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.seen[method] < n {
		g.more.Wait()
	}
}

// through connects a client through a gateway.
func through(t *testing.T, s *taskServer, fail func(w http.ResponseWriter), times map[string]int, opts *mcp.ClientOptions) (*gateway, *mcp.ClientSession) {
	g := &gateway{fail: fail, h: shared(t, s, mcp.StreamableHTTPOptions{Stateless: true}), times: times, seen: make(map[string]int)}
	g.more = sync.NewCond(&g.mu)
	server := httptest.NewServer(g)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		server.CloseClientConnections()
		client.CloseIdleConnections()
		server.Close()
	})
	return g, following(t, &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, MaxRetries: -1}, opts)
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, http.StatusText(code), code) }
}

// reset ends a connection as a process does that is killed.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// cutOff ends a stream of events before its answer.
func cutOff(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(": hello\n\n"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// SPEC 11.10: what is not answered for now is asked for again, more often than the five times in a row
// after which a poll at a steady rate used to be given up.
func TestFollowTasksThroughAnOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": status(500), "502": status(502), "503": status(503), "504": status(504), "reset": reset, "cut off": cutOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			g, cs := through(t, s, fail, map[string]int{"tasks/get": 7, "tasks/update": 2, "tasks/cancel": 2}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
				},
			})
			go func() {
				g.await("tasks/get", 1)
				s.gate <- struct{}{}
			}()
			if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
				t.Error(got)
			}
			if n := g.count("tasks/get"); n < 8 {
				t.Errorf("asked %d times", n)
			}
			if got := texts(call(t, cs, "asks", nil)); got[0] != "accept as it was" {
				t.Error(got)
			}
			if n := g.count("tasks/update"); n != 3 {
				t.Errorf("answered %d times", n)
			}

			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				g.await("tasks/get", g.count("tasks/get")+1) // before that the client has no task
				cancel()
			}()
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "gated"}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			select {
			case got := <-s.ended:
				if !errors.Is(got, task.ErrCancelled) {
					t.Error(got)
				}
			case <-time.After(slack):
				t.Error("the tool runs on")
			}
			if n := g.count("tools/call"); n != 3 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// A server that is started anew refuses connections meanwhile.
func TestFollowTasksThroughARestart(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t)
	h := shared(t, s, mcp.StreamableHTTPOptions{Stateless: true})
	first := httptest.NewServer(h)
	at := first.Listener.Addr().String()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	cs := following(t, &mcp.StreamableClientTransport{Endpoint: first.URL, HTTPClient: client, MaxRetries: -1}, nil)
	go func() {
		<-s.polled
		first.CloseClientConnections()
		first.Close()
		time.Sleep(4 * time.Second)
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Error(err)
			return
		}
		second := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
		second.Start()
		t.Cleanup(func() { second.CloseClientConnections(); second.Close() })
		s.gate <- struct{}{}
	}()
	if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
		t.Error(got)
	}
}

// A failing store is one that fails the next times that it is asked.
type failingStore struct {
	task.Store
	times atomic.Int32
	with  error
}

func (f *failingStore) Get(ctx context.Context, owner, id string) (task.Record, error) {
	if f.times.Add(-1) >= 0 {
		return task.Record{}, f.with
	}
	return f.Store.Get(ctx, owner, id)
}

// SPEC 11.10: a server whose store is away answers with -32603, on every transport, and the result is
// fetched when that is back. A task that is unknown ends the call at once.
func TestFollowTasksThroughAnOutageOfTheStore(t *testing.T) {
	t.Parallel()
	for name, connect := range followers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &failingStore{Store: new(task.Memory), with: errors.New("no connection")}
			tasks := task.New(task.WithPoll(20*ms), task.WithStore(store))
			s := newTaskServer(t, mcpsdk.WithTasks(tasks))
			t.Cleanup(func() { _ = tasks.Close() })
			cs := following(t, connect(t, s), nil)
			go func() {
				<-s.polled
				store.times.Store(7)
				s.gate <- struct{}{}
			}()
			if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
				t.Error(got)
			}

			go func() {
				<-s.polled
				store.times.Store(1 << 30)
			}()
			store.with = task.ErrUnknown
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
				t.Error(err)
			}
			store.times.Store(0)
		})
	}
}

// SPEC 11.10: for as long as the server keeps the task, and no longer.
func TestFollowTasksNoLongerThanTheTask(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t)
	g, cs := through(t, s, status(502), map[string]int{"tasks/get": 1 << 30}, nil)
	inner := g.h
	g.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			w = &replacing{w}
		}
		inner.ServeHTTP(w, r)
	})
	_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"})
	if err == nil || !strings.Contains(err.Error(), "Bad Gateway") || t.Context().Err() != nil {
		t.Error(err)
	}
	if n := g.count("tasks/get"); n < 3 || n > 8 {
		t.Errorf("asked %d times in 1.5 s", n)
	}
}

// replacing has the server say for how long it keeps a task.
type replacing struct{ http.ResponseWriter }

func (w *replacing) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.Replace(p, []byte(`"ttlMs":null`), []byte(`"ttlMs":1500`), 1))
	return len(p), err
}

func (w *replacing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A decliner is a person who is asked to authorize a client, and does not.
type decliner struct {
	auth.AuthorizationCodeHandler
	asked atomic.Int32
}

func (d *decliner) Authorize(context.Context, *http.Request, *http.Response) error {
	d.asked.Add(1)
	return errors.New("declined")
}

// SPEC 11.10: a request that is not authorized ends the call at once, and nobody is asked twice.
func TestFollowTasksUnauthorized(t *testing.T) {
	t.Parallel()
	for _, code := range []int{401, 403} {
		s := newTaskServer(t)
		g, _ := through(t, s, status(code), map[string]int{"tasks/get": 1 << 30}, nil)
		server := httptest.NewServer(g)
		t.Cleanup(server.Close)
		t.Cleanup(server.CloseClientConnections)
		person := new(decliner)
		cs := following(t, &mcp.StreamableClientTransport{Endpoint: server.URL, MaxRetries: -1, OAuthHandler: person}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), slack)
		defer cancel()
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "gated"})
		if err == nil || !strings.Contains(err.Error(), "declined") || person.asked.Load() != 1 {
			t.Errorf("%d: %v, asked %d times", code, err, person.asked.Load())
		}
	}
}
