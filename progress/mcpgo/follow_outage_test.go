package mcpgo_test

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

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
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

func newGateway(fail func(w http.ResponseWriter), times map[string]int) *gateway {
	g := &gateway{fail: fail, times: times, seen: make(map[string]int)}
	g.more = sync.NewCond(&g.mu)
	return g
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

// open opens a link through the gateway.
func (g *gateway) open(t *testing.T, s *server.MCPServer) transport.Interface {
	return openHandler(func(h http.Handler) http.Handler {
		g.h = mcpgo.WrapHTTP(h)
		return g
	}, nil)(t, s)
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

// inJSON is what some gateways answer with.
func inJSON(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte(`{"message":"no healthy upstream"}`))
}

// SPEC 11.10: what is not answered for now is asked for again.
func TestFollowTasksThroughAnOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": status(500), "502": status(502), "503": status(503), "504": status(504), "429": status(429), "reset": reset, "cut off": cutOff, "JSON": inJSON,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			g := newGateway(fail, map[string]int{"tasks/get": 7, "tasks/update": 2, "tasks/cancel": 2})
			c := connect(t, mcpgo.FollowTasks(g.open(t, s.MCPServer)), true, client.WithElicitationHandler(person{}))
			go func() {
				g.await("tasks/get", 1)
				s.release <- true
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := c.CallTool(ctx, call{tool: "now"}.request())
			if err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) {
				t.Errorf("%v %v", res, err)
			}
			if n := g.count("tasks/get"); n < 8 {
				t.Errorf("asked %d times", n)
			}
			res, err = c.CallTool(ctx, call{tool: "asks"}.request())
			if err != nil || !cmp.Equal([]string{"accept <nil> asked"}, view(t, res).Texts) || g.count("tasks/update") != 3 {
				t.Errorf("%v %v after %d answers", res, err, g.count("tasks/update"))
			}

			within(t, s.started, "the start of the first")
			polls := g.count("tasks/get")
			go func() {
				g.await("tasks/get", polls+1) // before that the client has no task
				cancel()
			}()
			if _, err := c.CallTool(ctx, call{tool: "held"}.request()); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			isCancelled(t, within(t, s.started, "the start"))
			if n := g.count("tools/call"); n != 3 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// SPEC 11.10: any other status ends the call at once.
func TestFollowTasksRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 403, 404, 408, 410, 425, 501, 505} {
		s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
		g := newGateway(status(code), map[string]int{"tasks/get": 1 << 30})
		c := connect(t, mcpgo.FollowTasks(g.open(t, s.MCPServer)), true)
		if _, err := c.CallTool(soon(t), call{tool: "now"}.request()); err == nil || errors.Is(err, context.DeadlineExceeded) || g.count("tasks/get") != 1 {
			t.Errorf("%d: %v after %d requests", code, err, g.count("tasks/get"))
		}
	}
}

// A server that is started anew refuses connections meanwhile.
func TestFollowTasksThroughARestart(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	g := newGateway(nil, nil)
	g.h = mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer))
	first := httptest.NewServer(g)
	at := first.Listener.Addr().String()
	tr, err := transport.NewStreamableHTTP(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, mcpgo.FollowTasks(tr), true)
	go func() {
		g.await("tasks/get", 1)
		first.CloseClientConnections()
		first.Close()
		time.Sleep(4 * time.Second)
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Error(err)
			return
		}
		second := &httptest.Server{Listener: l, Config: &http.Server{Handler: g}}
		second.Start()
		t.Cleanup(second.Close)
		t.Cleanup(second.CloseClientConnections)
		s.release <- true
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if res, err := c.CallTool(ctx, call{tool: "now"}.request()); err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) {
		t.Errorf("%v %v", res, err)
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

// SPEC 11.10: a server whose store is away answers with -32603, and the result is fetched when that is
// back. A task that is unknown ends the call at once.
func TestFollowTasksThroughAnOutageOfTheStore(t *testing.T) {
	t.Parallel()
	for _, l := range named(tasksOver...) {
		t.Run(l.name, func(t *testing.T) {
			store := &failingStore{Store: new(task.Memory), with: errOwn}
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t, task.WithStore(store))))
			c := connect(t, mcpgo.FollowTasks(l.open(t, s.MCPServer)), true)
			go func() {
				<-s.started
				store.times.Store(9)
				s.release <- true
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := c.CallTool(ctx, call{tool: "now"}.request())
			if err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) {
				t.Errorf("%v %v", res, err)
			}
			go func() {
				<-s.started
				store.times.Store(1 << 30)
			}()
			store.with = task.ErrUnknown
			if _, err := c.CallTool(ctx, call{tool: "now"}.request()); err == nil || !strings.Contains(err.Error(), "unknown or expired") {
				t.Error(err)
			}
			store.times.Store(0)
		})
	}
}

// SPEC 11.10: for as long as the server keeps the task, and no longer.
func TestFollowTasksNoLongerThanTheTask(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	g := newGateway(status(502), map[string]int{"tasks/get": 1 << 30})
	tr := g.open(t, s.MCPServer)
	inner := g.h
	g.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == string(mcp.MethodToolsCall) {
			w = &replacing{w}
		}
		inner.ServeHTTP(w, r)
	})
	c := connect(t, mcpgo.FollowTasks(tr), true)
	_, err := c.CallTool(t.Context(), call{tool: "now"}.request())
	if err == nil || !strings.Contains(err.Error(), "502") {
		t.Error(err)
	}
	if n := g.count("tasks/get"); n < 3 || n > 9 {
		t.Errorf("asked %d times in 1.5 s", n)
	}
}

// replacing has the server say for how long it keeps a task.
type replacing struct{ http.ResponseWriter }

func (w *replacing) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.Replace(p, []byte(`"ttlMs":null`), []byte(`"ttlMs":1500`), 1))
	return len(p), err
}

func (w *replacing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *replacing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
