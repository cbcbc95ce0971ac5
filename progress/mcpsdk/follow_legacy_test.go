package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// legacyFollowers are the ways for a client of the SDK to reach a server with tasks of 2025-11-25.
var legacyFollowers = map[string]func(t testing.TB, s *taskServer) mcp.Transport{
	"in-memory": func(t testing.TB, s *taskServer) mcp.Transport {
		server, client := mcp.NewInMemoryTransports()
		ss, err := s.server().Connect(context.Background(), mcpsdk.WrapTransport(server), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ss.Wait() })
		return client
	},
	"HTTP":           followHTTP(mcp.StreamableHTTPOptions{}, false), // what nil is, too
	"HTTP, JSON":     followHTTP(mcp.StreamableHTTPOptions{JSONResponse: true}, false),
	"HTTP, resuming": followHTTP(mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}, false),
	"HTTP without a stream of notifications": func(t testing.TB, s *taskServer) mcp.Transport {
		tr := followHTTP(mcp.StreamableHTTPOptions{}, false)(t, s).(*mcp.StreamableClientTransport)
		tr.DisableStandaloneSSE = true
		return tr
	},
}

// followingLegacy connects a client that follows tasks in protocol 2025-11-25.
func followingLegacy(t testing.TB, transport mcp.Transport, opts *mcp.ClientOptions, prepare ...func(*mcp.Client)) *mcp.ClientSession {
	t.Helper()
	c := newTestClient(opts)
	for _, f := range prepare {
		f(c)
	}
	mcpsdk.FollowTasks(c)
	cs, err := c.Connect(context.Background(), mcpsdk.WrapClientTransport(transport), &mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != protocol2025 {
		t.Fatal(got)
	}
	return cs
}

// SPEC 11.2, 11.6: CallTool just takes longer, whether or not the client has listed the tools.
func TestFollowLegacyTasks(t *testing.T) {
	t.Parallel()
	for name, connect := range legacyFollowers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			cs := followingLegacy(t, connect(t, s), nil)
			if got := texts(call(t, cs, "fast", "t")); got[0] != "fast" { // never a task
				t.Error(got)
			}
			go func() {
				<-s.polled // so it is one
				s.gate <- struct{}{}
			}()
			if got := texts(call(t, cs, "gated", "t")); got[0] != "through" {
				t.Error(got)
			}
			if res := call(t, cs, "idle", nil); !res.IsError || outcome(res)["kind"] != "idle" || !strings.HasPrefix(texts(res)[0], "No progress for 0.15s") {
				t.Error(texts(res), outcome(res))
			}
			go func() { s.gate <- struct{}{} }()
			if res := call(t, cs, "fails", nil); !res.IsError || texts(res)[0] != "disk is full" {
				t.Error(texts(res))
			}
			go func() { s.gate <- struct{}{} }()
			_, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "refuses"})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != -32042 || wire.Message != "not like this" {
				t.Error(err)
			}
			// The code of a store that is away, too.
			_, err = cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "breaks"})
			if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInternalError || wire.Message != "broken" {
				t.Error(err)
			}
			go func() { s.gate <- struct{}{} }()
			if got := texts(call(t, cs, "only", nil)); got[0] != "only" { // cannot be called otherwise
				t.Error(got)
			}
			if _, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "nothing"}); err == nil {
				t.Error("a tool that is not there")
			}
		})
	}
}

// SPEC 11.5: the caller's cancellation reaches the task.
func TestFollowLegacyTasksCancel(t *testing.T) {
	t.Parallel()
	for name, connect := range legacyFollowers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			cs := followingLegacy(t, connect(t, s), nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-s.polled // before that the client has no task
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
			if got := texts(call(t, cs, "fast", nil)); got[0] != "fast" { // the connection lives
				t.Error(got)
			}
		})
	}
}

// SPEC 11.4: questions of the task go to the client's handler.
func TestFollowLegacyTasksAsk(t *testing.T) {
	t.Parallel()
	for name, connect := range legacyFollowers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			cs := followingLegacy(t, connect(t, s), &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
				},
			})
			if got := texts(call(t, cs, "elicits", nil)); got[0] != "accept" {
				t.Error(got)
			}
		})
	}
}

// SPEC 11.10: an outage of the store, also while the result is fetched, loses no call.
func TestFollowLegacyTasksThroughAnOutage(t *testing.T) {
	t.Parallel()
	for name, connect := range legacyFollowers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &failingStore{Store: new(task.Memory), with: errors.New("no connection")}
			tasks := task.New(task.WithPoll(20*ms), task.WithStore(store))
			s := newTaskServer(t, mcpsdk.WithTasks(tasks))
			t.Cleanup(func() { _ = tasks.Close() })
			cs := followingLegacy(t, connect(t, s), nil)
			go func() {
				<-s.polled
				store.times.Store(6)
				s.gate <- struct{}{}
			}()
			if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
				t.Error(got)
			}
		})
	}
}

// SPEC 11.2: the form of the documentation, with no options, end to end: the call is a task, which
// outlives the limit of a request, and its connection.
func TestFollowTasksAsDocumented(t *testing.T) {
	t.Parallel()
	s := newTaskServer(t)
	server := s.server()
	h := mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	web := httptest.NewServer(h)
	transport := &http.Transport{}
	t.Cleanup(func() {
		for ss := range server.Sessions() {
			_ = ss.Close()
		}
		web.CloseClientConnections()
		transport.CloseIdleConnections()
		web.Close()
	})
	client := newTestClient(nil)
	mcpsdk.Limit(client, mcpsdk.ClientLimits{Timeout: 8 * time.Second}, nil)
	mcpsdk.FollowTasks(client)
	cs, err := client.Connect(t.Context(), mcpsdk.WrapClientTransport(&mcp.StreamableClientTransport{
		Endpoint: web.URL, HTTPClient: &http.Client{Transport: transport},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != protocol2025 {
		t.Errorf("speaks %s: the documentation says otherwise", got)
	}
	opened := time.AfterFunc(10*time.Second, func() { s.gate <- struct{}{} })
	defer opened.Stop()
	if got := texts(call(t, cs, "gated", nil)); got[0] != "through" {
		t.Error(got)
	}
}
