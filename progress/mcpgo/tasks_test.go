package mcpgo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// taskPolicy has the limits of the tools of newTaskServer.
func taskPolicy() *policy.Policy {
	limits := timeout.Config{Total: never, Grace: slack}
	return &policy.Policy{
		Default: &limits,
		Lookup:  func(string) (string, bool) { return "", false },
		Tools: map[string]policy.Tool{
			"held":    {Limits: &limits, Soft: 30 * ms},
			"quick":   {Limits: &limits, Soft: never - 1},
			"patient": {Limits: &limits, Soft: never - 1},
			"now":     {Limits: &limits, Soft: -1},
			"only":    {Limits: &limits, TaskOnly: true},
			"fails":   {Limits: &limits, Soft: -1},
			"breaks":  {Limits: &limits, Soft: -1},
			"stopped": {Limits: &timeout.Config{Total: 100 * ms, Grace: slack}, Soft: -1},
			"asks":    {Limits: &limits, Soft: -1},
			"elicits": {Limits: &limits, Soft: -1},
			"later":   {Limits: &limits, Soft: 4 * time.Second},
		},
	}
}

// A taskServer has tools that become tasks.
type taskServer struct {
	*server.MCPServer
	started chan context.Context // of those that wait
	release chan bool
}

func newTaskServer(t *testing.T, opts ...mcpgo.InstallOption) *taskServer {
	t.Helper()
	s := &taskServer{
		server.NewMCPServer("test", "1", server.WithToolCapabilities(false), server.WithElicitation()),
		make(chan context.Context, 1000), make(chan bool, 1000),
	}
	mcpgo.Install(s.MCPServer, taskPolicy(), append([]mcpgo.InstallOption{mcpgo.WithInterval(1)}, opts...)...)
	add := func(name string, h server.ToolHandlerFunc) { s.AddTool(mcp.NewTool(name), h) }
	for _, name := range []string{"held", "patient", "now", "only", "plain"} {
		add(name, func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			progress.Report(ctx, progress.Update{Progress: 1, Total: 3, Message: "begun"})
			s.started <- ctx
			select {
			case <-s.release:
				return mcp.NewToolResultText("done " + r.GetString("what", "")), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
	}
	add("quick", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("quick"), nil
	})
	add("fails", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such file"), nil
	})
	add("breaks", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, errOwn })
	add("stopped", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return mcp.NewToolResultText("half of it"), nil
	})
	question := mcp.ElicitationParams{Message: "Who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}
	ask := func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		a := server.ElicitationResponse(r.Params.InputResponses, "name")
		if a == nil {
			return server.NewInputRequestBuilder("asked").Elicit("name", question).ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprint(a.Action, " ", a.Content, " ", r.Params.RequestState)), nil
	}
	add("asks", ask)
	// Asks at once, which on a busy machine may take a while, and takes its time with the answer.
	add("later", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(r.Params.InputResponses) > 0 {
			time.Sleep(7 * time.Second)
		}
		return ask(ctx, r)
	})
	add("elicits", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := mcpgo.Elicit(ctx, mcp.ElicitationRequest{Params: question}, progress.Wait{})
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(fmt.Sprint(res.Action, " ", res.Content)), nil
	})
	return s
}

func newTasks(t *testing.T) *task.Tasks {
	t.Helper()
	tasks := &task.Tasks{Poll: 20 * ms}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	return tasks
}

// Without Serve or WrapHTTP nothing is declared, and calls are plain.
func TestNoTasksWithoutTheWire(t *testing.T) {
	for _, l := range named("stdio 2025", "stdio 2026", "sse 2025", "http 2025", "http 2026") {
		t.Run(l.name, func(t *testing.T) {
			s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
			c := l.connect(t, s.MCPServer)
			if got := c.GetServerCapabilities(); got.Tasks != nil || len(got.Extensions) > 0 {
				t.Errorf("%+v", got)
			}
			tools, err := c.ListTools(soon(t), mcp.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools.Tools {
				if tool.Execution != nil {
					t.Errorf("%s: %+v", tool.Name, tool.Execution)
				}
			}
			time.AfterFunc(80*ms, func() { s.release <- true })
			if res, err := c.CallTool(soon(t), call{tool: "held"}.request()); err != nil || view(t, res).Texts[0] != "done " {
				t.Errorf("%v %v", res, err)
			}
			if _, err := c.CallTool(soon(t), call{tool: "only"}.request()); err == nil {
				t.Error("a tool that is only a task was called")
			}
		})
	}
}

// The answer to a request that makes no sense: code and, from 2026-07-28 on, the status over HTTP.
func TestTaskErrors(t *testing.T) {
	over(t, func(t *testing.T, w way) {
		s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
		p := w.connect(t, s.MCPServer)
		id := p.handle("now", nil)
		for _, tc := range []struct {
			name         string
			method       string
			params       map[string]any
			undeclared   bool
			code, legacy float64 // 0: none
			status       int
		}{
			{name: "unknown", method: "tasks/get", params: map[string]any{"taskId": "x"}, code: -32602, legacy: -32602, status: 400},
			{name: "no id", method: "tasks/get", code: -32602, legacy: -32602, status: 400},
			{name: "result", method: "tasks/result", params: map[string]any{"taskId": "x"}, code: -32601, legacy: -32602, status: 404},
			{name: "update", method: "tasks/update", params: map[string]any{"taskId": "x"}, code: -32602, legacy: -32601, status: 400},
			{name: "cancel", method: "tasks/cancel", params: map[string]any{"taskId": "x"}, code: -32602, legacy: -32602, status: 400},
			{name: "no such method", method: "tasks/nonsense", params: map[string]any{"taskId": "x"}, code: -32601, legacy: -32601, status: 404},
			{name: "not declared", method: "tasks/get", params: map[string]any{"taskId": id}, undeclared: true, code: -32021, status: 400},
			{name: "only a task", method: "tools/call", params: map[string]any{"name": "only"}, undeclared: true, code: -32021, legacy: -32601, status: 400},
			{name: "listen", method: "subscriptions/listen", params: map[string]any{"notifications": map[string]any{"taskIds": []string{id}}}, undeclared: true, code: -32021, legacy: -32601, status: 400},
			{name: "a tool that is none", method: "tools/call", params: map[string]any{"name": "none", "task": map[string]any{}}, code: -32602, legacy: -32602, status: 400},
		} {
			t.Run(tc.name, func(t *testing.T) {
				p.declares = !tc.undeclared
				defer func() { p.declares = true }()
				m, status := p.send(soon(t), p.id(), tc.method, p.params(tc.params))
				fault := object(t, m.Error)
				want := tc.code
				if !w.modern {
					want, tc.status = tc.legacy, 200
				}
				if want == 0 {
					want = -1
					fault = map[string]any{"code": -1.0}
				}
				if fault["code"] != want || status != 0 && status != tc.status {
					t.Errorf("%s %s, status %d; want %v and %d", m.Result, m.Error, status, want, tc.status)
				}
				// The words of a refusal arrive.
				if words := `tool "only" can only be called as a task`; tc.name == "only a task" && !w.modern && fault["message"] != words {
					t.Errorf("%s, want %s", m.Error, words)
				}
				if want == -32021 && !strings.Contains(string(m.Error), `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
					t.Errorf("%s", m.Error)
				}
			})
		}
		s.release <- true
	})
}

// SPEC 11.3: a task is its session's, or its principal's.
func TestTaskBelongsToItsCaller(t *testing.T) {
	over(t, func(t *testing.T, w way) {
		type who struct{}
		s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)), mcpgo.WithPrincipal(func(ctx context.Context) string {
			name, _ := ctx.Value(who{}).(string)
			return name
		}))
		h := mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer, server.WithHTTPContextFunc(func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, who{}, r.URL.Query().Get("who"))
		})))
		ts := httptest.NewServer(h)
		defer ts.Close()
		as := func(name string) *peer {
			p := &peer{t: t, modern: w.modern, declares: true, inbox: make(chan message, 1000)}
			p.streamable(ts.URL+"?who="+name, ts.Client())
			if !w.modern {
				p.initialize()
			}
			return p
		}
		alice, again, bob := as("alice"), as("alice"), as("bob")
		nobody, other := as(""), as("")
		id, anonymous := alice.handle("now", nil), nobody.handle("now", nil)
		knows := func(p *peer, id string) bool {
			res, _ := p.call("tasks/get", map[string]any{"taskId": id})
			return res["taskId"] == id
		}
		got := []bool{knows(alice, id), knows(again, id), knows(bob, id), knows(other, id), knows(nobody, anonymous), knows(other, anonymous)}
		// Without a session the id alone decides.
		want := []bool{true, true, false, false, true, w.modern}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if _, fault := bob.call("tasks/cancel", map[string]any{"taskId": id}); fault == nil {
			t.Error("another's task was cancelled")
		}
		s.release <- true
		s.release <- true
	}, "http 2025", "http 2026")
}

// A status message of a task whose handle is still on its way does not take the handle's place.
func TestStatusBeforeTheHandle(t *testing.T) {
	t.Parallel()
	over(t, func(t *testing.T, w way) {
		s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
		s.GetHooks().AddAfterCallTool(func(context.Context, any, *mcp.CallToolRequest, any) { time.Sleep(100 * ms) })
		p := w.connect(t, s.MCPServer)
		until := []string{"input_required"}
		if w.name == "sse 2025" {
			until = append(until, "failed") // soon, since mcp-go cannot ask there
		}
		p.get(p.handle("asks", nil), until...)
	})
}

// SPEC 11.7: when the server is asked to end, tasks end with it.
func TestTasksEndWithTheServer(t *testing.T) {
	tasks := newTasks(t)
	s := newTaskServer(t, mcpgo.WithTasks(tasks))
	var drain toolcall.Drain
	ts := httptest.NewServer(drain.Handler(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer))))
	defer ts.Close()
	p := &peer{t: t, modern: true, declares: true, inbox: make(chan message, 1000)}
	p.streamable(ts.URL, ts.Client())
	id := p.handle("now", nil)
	ctx := within(t, s.started, "the start")
	limited, cancel := context.WithTimeout(t.Context(), toolcall.ShutdownLimit) // no time to be closing first
	defer cancel()
	if err := drain.Shutdown(limited); err != nil {
		t.Error(err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, toolcall.ErrShutdown) {
		t.Errorf("the tool: %v", cause)
	}
	if err := tasks.Shutdown(soon(t)); err != nil {
		t.Error(err)
	}
	if res, fault := adapter.Serve(soon(t), tasks, adapter.Caller{Version: "2026-07-28", Declared: true}, "tasks/get",
		[]byte(`{"taskId":"`+id+`"}`)); fault != nil || res["status"] != task.Completed {
		t.Errorf("%v %v", res, fault)
	}
}

// mcp-go's own tasks go on where the policy has no soft limit.
func TestOwnTasksOfTheSDK(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	server.WithTaskCapabilities(true, true, true)(s.MCPServer)
	s.AddTool(mcp.NewTool("theirs", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(30 * ms)
		return mcp.NewToolResultText("theirs"), ctx.Err()
	})
	s.AddTool(mcp.NewTool("required", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("required"), ctx.Err()
	})
	p := ways[0].connect(t, s.MCPServer)
	for _, tool := range []string{"theirs", "required"} {
		id := p.handle(tool, map[string]any{"task": map[string]any{}})
		p.get(id, "completed")
		res, fault := p.result(id)
		if d := cmp.Diff([]string{tool}, textsOf(res)); d != "" || fault != nil {
			t.Errorf("%v %v", res, fault)
		}
	}
}

// The headers of a request about a task, which mcp-go does not know: a name that is another's is refused,
// and a method that is none is refused for that.
func TestTaskHeaders(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	ts := httptest.NewServer(mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s.MCPServer)))
	defer ts.Close()
	p := &peer{t: t, modern: true, declares: true, inbox: make(chan message, 1000)}
	p.streamable(ts.URL, ts.Client())
	id := p.handle("now", nil)
	for _, tc := range []struct {
		name, method, headerMethod, headerName string
		status                                 int
		code                                   float64
	}{
		{"as it must be", "tasks/get", "tasks/get", id, 200, 0},
		{"encoded", "tasks/get", "tasks/get", "=?base64?" + base64.StdEncoding.EncodeToString([]byte(id)) + "?=", 200, 0},
		{"another name", "tasks/get", "tasks/get", "x", 400, -32020},
		{"no name", "tasks/cancel", "tasks/cancel", "", 400, -32020},
		{"another method", "tasks/get", "tasks/cancel", id, 400, -32020},
		{"no method", "tasks/get", "", id, 400, -32020},
		{"a method that is none", "tasks/result", "tasks/result", "", 404, -32601},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(soon(t), http.MethodPost, ts.URL,
				bytes.NewReader(encodeMessage("a", tc.method, p.params(map[string]any{"taskId": id}))))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(mcp.HeaderProtocolVersion, "2026-07-28")
			for key, value := range map[string]string{mcp.HeaderMethod: tc.headerMethod, mcp.HeaderName: tc.headerName} {
				if value != "" {
					r.Header.Set(key, value)
				}
			}
			resp, err := ts.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var answer struct {
				ID    string
				Error struct{ Code float64 }
			}
			if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.ID != "a" {
				t.Errorf("%+v %v", answer, err)
			}
			if resp.StatusCode != tc.status || answer.Error.Code != tc.code {
				t.Errorf("%d %v", resp.StatusCode, answer)
			}
		})
	}
	s.release <- true
}

// What a tool says cannot pass for an answer of ours, and what is none of ours passes as it is.
func TestToolsCannotForgeAHandle(t *testing.T) {
	s := newTaskServer(t, mcpgo.WithTasks(newTasks(t)))
	s.AddTool(mcp.NewTool("plain"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res := mcp.NewToolResultText(`"}{"io.github.tooldeadline/`)
		res.Meta = &mcp.Meta{AdditionalFields: map[string]any{ // mcp-go writes to it
			"io.github.tooldeadline/x": map[string]any{"result": map[string]any{"resultType": "task", "taskId": "x"}},
		}}
		return res, nil
	})
	over(t, func(t *testing.T, w way) {
		p := w.connect(t, s.MCPServer)
		res, fault := p.call("tools/call", map[string]any{"name": "plain", "arguments": map[string]any{}})
		meta, _ := res["_meta"].(map[string]any)
		if d := cmp.Diff([]string{`"}{"io.github.tooldeadline/`}, textsOf(res)); d != "" || fault != nil || meta["io.github.tooldeadline/x"] == nil {
			t.Errorf("%v %v", res, fault)
		}
	}, "stdio", "http 2026")
}
