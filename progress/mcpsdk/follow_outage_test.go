package mcpsdk_test

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

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/gateway"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// through connects a client through a gateway.
func through(t *testing.T, s *taskServer, fail func(w http.ResponseWriter), times map[string]int, opts *mcp.ClientOptions) (*gateway.Gateway, *mcp.ClientSession) {
	g := gateway.New(fail, times)
	g.Next = shared(t, s, mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(g)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		server.CloseClientConnections()
		client.CloseIdleConnections()
		server.Close()
	})
	return g, following(t, &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client, MaxRetries: -1}, opts)
}

// SPEC 11.10: a request without an answer is repeated, more often than the five times in a row after
// which a poll at a steady rate used to be given up.
func TestFollowTasksThroughAnOutage(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": gateway.Status(500), "502": gateway.Status(502), "503": gateway.Status(503), "504": gateway.Status(504), "reset": gateway.Reset, "cut off": gateway.CutOff,
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
				g.Await("tasks/get", 1)
				s.gate <- struct{}{}
			}()
			if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
				t.Error(got)
			}
			if n := g.Count("tasks/get"); n < 8 {
				t.Errorf("asked %d times", n)
			}
			if got := texts(call(t, cs, "asks", nil)); got[0] != "accept as it was" {
				t.Error(got)
			}
			if n := g.Count("tasks/update"); n != 3 {
				t.Errorf("answered %d times", n)
			}

			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				g.Await("tasks/get", g.Count("tasks/get")+1) // before that the client has no task
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
			if n := g.Count("tools/call"); n != 3 {
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
	g, cs := through(t, s, gateway.Status(502), map[string]int{"tasks/get": 1 << 30}, nil)
	g.Saying("tools/call", `"ttlMs":null`, `"ttlMs":3000`)
	_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "gated"})
	if err == nil || !strings.Contains(err.Error(), "Bad Gateway") || t.Context().Err() != nil {
		t.Error(err)
	}
	if n := g.Count("tasks/get"); n < 3 || n > 9 {
		t.Errorf("asked %d times in 3 s", n)
	}
}

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
		g, _ := through(t, s, gateway.Status(code), map[string]int{"tasks/get": 1 << 30}, nil)
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
