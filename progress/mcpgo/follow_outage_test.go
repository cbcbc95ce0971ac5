package mcpgo_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/internal/gateway"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// openThrough opens a link through the gateway.
func openThrough(t *testing.T, g *gateway.Gateway, s *server.MCPServer) transport.Interface {
	return openHandler(func(h http.Handler) http.Handler {
		g.Next = mcpgo.WrapHTTP(h)
		return g
	}, nil)(t, s)
}

// inJSON is what some gateways answer with.
func inJSON(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte(`{"message":"no healthy upstream"}`))
}

// SPEC 11.10: a request without an answer is repeated.
func TestFollowTasksThroughAnOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": gateway.Status(500), "502": gateway.Status(502), "503": gateway.Status(503), "504": gateway.Status(504), "429": gateway.Status(429), "reset": gateway.Reset, "cut off": gateway.CutOff, "JSON": inJSON,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			g := gateway.New(fail, map[string]int{"tasks/get": 7, "tasks/update": 2, "tasks/cancel": 2})
			c := connect(t, mcpgo.FollowTasks(openThrough(t, g, s.MCPServer)), true, client.WithElicitationHandler(person{}))
			go func() {
				g.Await("tasks/get", 1)
				s.release <- true
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := c.CallTool(ctx, call{tool: "now"}.request())
			if err != nil || !cmp.Equal([]string{"done "}, view(t, res).Texts) {
				t.Errorf("%v %v", res, err)
			}
			if n := g.Count("tasks/get"); n < 8 {
				t.Errorf("asked %d times", n)
			}
			res, err = c.CallTool(ctx, call{tool: "asks"}.request())
			if err != nil || !cmp.Equal([]string{"accept <nil> asked"}, view(t, res).Texts) || g.Count("tasks/update") != 3 {
				t.Errorf("%v %v after %d answers", res, err, g.Count("tasks/update"))
			}

			within(t, s.started, "the start of the first")
			polls := g.Count("tasks/get")
			go func() {
				g.Await("tasks/get", polls+1) // before that the client has no task
				cancel()
			}()
			if _, err := c.CallTool(ctx, call{tool: "held"}.request()); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			isCancelled(t, within(t, s.started, "the start"))
			if n := g.Count("tools/call"); n != 3 {
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
		g := gateway.New(gateway.Status(code), map[string]int{"tasks/get": 1 << 30})
		c := connect(t, mcpgo.FollowTasks(openThrough(t, g, s.MCPServer)), true)
		if _, err := c.CallTool(soon(t), call{tool: "now"}.request()); err == nil || errors.Is(err, context.DeadlineExceeded) || g.Count("tasks/get") != 1 {
			t.Errorf("%d: %v after %d requests", code, err, g.Count("tasks/get"))
		}
	}
}

// A server that is started anew refuses connections meanwhile.
func TestFollowTasksThroughARestart(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	g := gateway.New(nil, nil)
	g.Next = mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer))
	first := httptest.NewServer(g)
	at := first.Listener.Addr().String()
	tr, err := transport.NewStreamableHTTP(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, mcpgo.FollowTasks(tr), true)
	go func() {
		g.Await("tasks/get", 1)
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
			t.Parallel()
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
	g := gateway.New(gateway.Status(502), map[string]int{"tasks/get": 1 << 30})
	tr := openThrough(t, g, s.MCPServer)
	g.Saying("tools/call", `"ttlMs":null`, `"ttlMs":3000`)
	c := connect(t, mcpgo.FollowTasks(tr), true)
	_, err := c.CallTool(t.Context(), call{tool: "now"}.request())
	if err == nil || !strings.Contains(err.Error(), "502") {
		t.Error(err)
	}
	if n := g.Count("tasks/get"); n < 3 || n > 10 {
		t.Errorf("asked %d times in 3 s", n)
	}
}
