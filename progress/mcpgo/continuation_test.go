package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// continuedID returns the id of a result that says that the call is still running.
func continuedID(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	raw, _ := json.Marshal(res.Meta.GetMetaField(task.ContinuationKey))
	var c struct{ ID string }
	if json.Unmarshal(raw, &c) != nil || c.ID == "" || res.IsError {
		t.Fatalf("no continuation: %+v", view(t, res))
	}
	if text := view(t, res).Texts[0]; !strings.HasPrefix(text, "Still running after ") ||
		!strings.Contains(text, `Call wait_for_result with {"id": "`+c.ID+`"} to wait for the result.`) {
		t.Errorf("%q", text)
	}
	return c.ID
}

func waitCall(id string) mcp.CallToolRequest {
	return call{tool: "wait_for_result", args: map[string]any{"id": id}}.request()
}

// SPEC 12.1, 12.2, 12.3: to a client that knows no tasks, over every transport, a call that takes long
// is an ordinary result in time, and another tool has the rest, as often as it is asked.
func TestContinuation(t *testing.T) {
	t.Parallel()
	inProcess := link{"in process", true, func(_ *testing.T, s *server.MCPServer) transport.Interface {
		return transport.NewInProcessTransport(s)
	}}
	for _, tasks := range []bool{false, true} {
		for _, l := range append([]link{inProcess}, links...) {
			t.Run(fmt.Sprint(l.name, " tasks=", tasks), func(t *testing.T) {
				t.Parallel()
				opts := []mcpgo.InstallOption{mcpgo.WithContinuation(50 * ms)}
				if tasks {
					opts = append(opts, mcpgo.WithTasks(newTasks(t)))
				}
				s := newTaskServer(t, opts...)
				c := l.connect(t, s.MCPServer)
				r := call{tool: "plain", token: "t", args: map[string]any{"what": "it"}}.request()
				res, err := c.CallTool(soon(t), r)
				if err != nil {
					t.Fatal(err)
				}
				id := continuedID(t, res)
				within(t, s.started, "the start")
				if res, err = c.CallTool(soon(t), waitCall(id)); err != nil || continuedID(t, res) != id+".2" || !strings.Contains(view(t, res).Texts[0], "begun") {
					t.Errorf("%v %v", res, err)
				}
				s.release <- true
				for range 2 {
					res, err = c.CallTool(soon(t), waitCall(id))
					for err == nil && strings.HasPrefix(view(t, res).Texts[0], "Still running") { // a busy machine
						res, err = c.CallTool(soon(t), waitCall(id))
					}
					if err != nil || !cmp.Equal([]string{"done it"}, view(t, res).Texts) {
						t.Errorf("%v %v", res, err)
					}
				}
				if len(s.started) != 0 {
					t.Error("the tool was called again")
				}
			})
		}
	}
}

// SPEC 12.2: cancel aborts the call. SPEC 12.3: the result for a value that is no id says so.
func TestContinuationIsCancelled(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithContinuation(50*ms))
	c := named("http 2025")[0].connect(t, s.MCPServer)
	res, err := c.CallTool(soon(t), call{tool: "plain"}.request())
	if err != nil {
		t.Fatal(err)
	}
	id := continuedID(t, res)
	tool := within(t, s.started, "the start")
	res, err = c.CallTool(soon(t), call{tool: "wait_for_result", args: map[string]any{"id": id, "cancel": true}}.request())
	for err == nil && strings.HasPrefix(view(t, res).Texts[0], "Still running") { // a busy machine
		res, err = c.CallTool(soon(t), waitCall(id))
	}
	if err != nil || !res.IsError || !strings.HasPrefix(view(t, res).Texts[0], "Tool was aborted") {
		t.Errorf("%v %v", res, err)
	}
	if cause := context.Cause(tool); !errors.Is(cause, task.ErrCancelled) {
		t.Errorf("the tool: %v", cause)
	}
	for _, id := range []any{"x", nil, 7} {
		res, err := c.CallTool(soon(t), call{tool: "wait_for_result", args: map[string]any{"id": id}}.request())
		if err != nil || !res.IsError {
			t.Errorf("%v: %v %v", id, res, err)
		}
	}
}

// SPEC 12.5: the calls that a session has left running end with it.
func TestContinuationEndsWithTheSession(t *testing.T) {
	for _, l := range named("serve 2025", "sse 2025", "wrapped 2025", "http 2025") {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithContinuation(30*ms))
			c := l.connect(t, s.MCPServer)
			if _, err := c.CallTool(soon(t), call{tool: "plain"}.request()); err != nil {
				t.Fatal(err)
			}
			tool := within(t, s.started, "the start")
			if tool.Err() != nil {
				t.Fatalf("with the call: %v", context.Cause(tool))
			}
			_ = c.Close()
			select {
			case <-tool.Done():
				if cause := context.Cause(tool); !errors.Is(cause, toolcall.ErrSessionEnded) {
					t.Errorf("%v", cause)
				}
			case <-time.After(slack):
				t.Error("it goes on")
			}
		})
	}
}

// SPEC 12.4: a tool that may be continued lists no output schema, and what it has stays.
func TestContinuationAndOutputSchema(t *testing.T) {
	type out struct {
		N int `json:"n"`
	}
	limits := timeout.Config{Total: 50 * ms, Grace: -1}
	s := server.NewMCPServer("test", "1", server.WithOutputSchemaValidation())
	mcpgo.Install(s, &policy.Policy{Default: &timeout.Config{Total: never, Grace: slack},
		Tools: map[string]policy.Tool{"short": {Limits: &limits}}}, mcpgo.WithContinuation(60*ms))
	wait := make(chan bool, 1)
	for _, name := range []string{"long", "short"} {
		s.AddTool(mcp.NewTool(name, mcp.WithOutputSchema[out]()), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-wait
			return mcp.NewToolResultStructured(out{7}, "7"), nil
		})
	}
	c := named("http 2026")[0].connect(t, s)
	tools, err := c.ListTools(soon(t), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, tool := range tools.Tools {
		listed[tool.Name] = tool.OutputSchema.Type != ""
	}
	if d := cmp.Diff(map[string]bool{"long": false, "short": true, "wait_for_result": false}, listed); d != "" {
		t.Error(d)
	}
	if own := s.GetTool("long").Tool.OutputSchema; own.Type == "" {
		t.Error("the tool's own schema is gone")
	}
	res, err := c.CallTool(soon(t), call{tool: "long"}.request())
	if err != nil {
		t.Fatal(err)
	}
	id := continuedID(t, res)
	wait <- true
	res, err = c.CallTool(soon(t), waitCall(id))
	for err == nil && strings.HasPrefix(view(t, res).Texts[0], "Still running") { // a busy machine
		res, err = c.CallTool(soon(t), waitCall(id))
	}
	if err != nil || !cmp.Equal(res.StructuredContent, any(map[string]any{"n": 7.0})) {
		t.Errorf("%+v %v", res, err)
	}
}

// A client that gives up after a time that no progress renews loses nothing.
func TestNoCallIsLost(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithContinuation(100*ms), mcpgo.WithWaitTool("go_on"))
	c := connect(t, mcpgo.Limit(named("wrapped 2025")[0].open(t, s.MCPServer), mcpgo.ClientLimits{Timeout: 10 * time.Second}, nil), false)
	res, err := c.CallTool(soon(t), call{tool: "plain"}.request())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(500*ms, func() { s.release <- true })
	raw, _ := json.Marshal(res.Meta.GetMetaField(task.ContinuationKey))
	var to struct{ ID, Tool string }
	if err := json.Unmarshal(raw, &to); err != nil || to.Tool != "go_on" {
		t.Fatalf("%s %v", raw, err)
	}
	for range 100 {
		if res, err = c.CallTool(soon(t), call{tool: to.Tool, args: map[string]any{"id": to.ID}}.request()); err != nil {
			t.Fatal(err)
		}
		if view(t, res).Texts[0] == "done " {
			return
		}
	}
	t.Errorf("%+v", view(t, res))
}

// A question of a call that was continued reaches the person: before 2026-07-28 as a request of the
// server, then as a question of the wait tool.
func TestContinuedCallAsks(t *testing.T) {
	t.Parallel()
	for _, l := range named("serve 2025", "serve 2026", "wrapped 2025", "wrapped 2026", "http 2026") {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpgo.WithContinuation(5*time.Second))
			s.AddTool(mcp.NewTool("held"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if a := server.ElicitationResponse(r.Params.InputResponses, "name"); a != nil {
					return mcp.NewToolResultText(string(a.Action)), nil
				}
				<-s.release
				return server.NewInputRequestBuilder("").Elicit("name", mcp.ElicitationParams{
					Message: "Who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
				}).ToolResult(), nil
			})
			c := l.connect(t, s.MCPServer, client.WithElicitationHandler(person{}))
			res, err := c.CallTool(soon(t), call{tool: "held"}.request())
			if err != nil {
				t.Fatal(err)
			}
			id := continuedID(t, res)
			s.release <- true
			for range 10 {
				if res, err = c.CallTool(soon(t), waitCall(id)); err != nil {
					t.Fatal(err)
				}
				if view(t, res).Texts[0] == "accept" {
					return
				}
			}
			t.Errorf("%+v", view(t, res))
		})
	}
}

// Over Streamable HTTP a stream of notifications may end without its session.
func TestContinuationOutlivesAStream(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithContinuation(30*ms))
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer)))
	defer ts.Close()
	gone := make(chan bool)
	s.GetHooks().AddOnUnregisterSession(func(context.Context, server.ClientSession) { close(gone) })
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, ts.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("Mcp-Session-Id", "mcp-session-6ba7b810-9dad-41d1-80b4-00c04fd430c8") // that of post
	stream, err := ts.Client().Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	_ = post(t, http.DefaultClient, ts.URL, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plain"}}`).Body.Close()
	tool := within(t, s.started, "the start")
	hangUp()
	<-gone
	if tool.Err() != nil {
		t.Errorf("with the stream: %v", context.Cause(tool))
	}
	s.release <- true
}
