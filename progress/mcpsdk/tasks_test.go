package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A taskServer has tools for tasks.
type taskServer struct {
	tasks *task.Tasks
	// one request of the tool "gated" passes for each that is sent here.
	gate chan struct{}
	// ended has the causes with which the calls of "silent" ended.
	ended chan error
	// started has an entry for each call of "patient", which becomes a task in an hour.
	started chan struct{}
	// polled has an entry for some requests for a task.
	polled chan struct{}
	// codes has the exit codes of calls that were aborted.
	codes chan int
	opts  []mcpsdk.InstallOption
}

func newTaskServer(t testing.TB, opts ...mcpsdk.InstallOption) *taskServer {
	s := &taskServer{tasks: task.New(task.WithPoll(20 * ms)), gate: make(chan struct{}), ended: make(chan error, 10), codes: make(chan int, 10), started: make(chan struct{}, 10), polled: make(chan struct{}, 1)}
	hooks := timeout.Hooks{Finished: func(_ context.Context, snap timeout.Snapshot) {
		if code := timeout.ExitCode(snap.Err); code == timeout.ExitAborted {
			s.codes <- code
		}
	}}
	s.opts = append([]mcpsdk.InstallOption{mcpsdk.WithTasks(s.tasks), mcpsdk.WithInterval(5 * ms), mcpsdk.WithOptions(timeout.WithHooks(hooks))}, opts...)
	t.Cleanup(func() { _ = s.tasks.Close() })
	return s
}

func (s *taskServer) server() *mcp.Server {
	m := mcp.NewServer(&mcp.Implementation{Name: "tasks", Version: "1"}, nil)
	raw := func(name string, h mcp.ToolHandler) { m.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, h) }
	raw("fast", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textResult("fast"), nil
	})
	raw("gated", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Progress: 3, Total: 10, Message: "main.go"})
		select {
		case <-s.gate:
			return textResult("through"), nil
		case <-ctx.Done():
			s.ended <- context.Cause(ctx)
			return textResult("two of three files"), nil
		}
	})
	raw("fails", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-s.gate
		return nil, errors.New("disk is full")
	})
	raw("refuses", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-s.gate
		return nil, &jsonrpc.Error{Code: -32042, Message: "not like this", Data: []byte(`{"why":"because"}`)}
	})
	raw("breaks", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "broken"}
	})
	raw("patient", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.started <- struct{}{}
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	raw("idle", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return textResult("two of three files"), nil
	})
	raw("asks", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return textResult(r.Action + " " + req.Params.RequestState), nil
		}
		return &mcp.CallToolResult{
			InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "the removal of 3 files", RequestedSchema: map[string]any{"type": "object"}}},
			RequestState:  "as it was",
		}, nil
	})
	raw("elicits", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return nil, err
		}
		return textResult(res.Action), nil
	})
	soft := func(idle time.Duration) policy.Tool {
		return policy.Tool{Limits: &timeout.Config{Total: time.Minute, Idle: idle, Grace: slack}, Soft: 30 * ms}
	}
	only := soft(0)
	only.TaskOnly = true
	p := &policy.Policy{
		Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second},
		Tools: map[string]policy.Tool{
			"gated": soft(0), "fails": soft(0), "refuses": soft(0), "idle": soft(150 * ms), "only": only,
			"asks": {Soft: -1}, "elicits": {Soft: -1}, "breaks": {Soft: -1}, "patient": {Soft: time.Hour}, "steps": soft(0),
		},
	}
	raw("only", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-s.gate
		return textResult("only"), nil
	})
	mcpsdk.Install(m, p, s.opts...)
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tasks/get" {
				select {
				case s.polled <- struct{}{}:
				default:
				}
			}
			return next(ctx, method, req)
		}
	})
	return m
}

func streamable(server func() *mcp.Server, o mcp.StreamableHTTPOptions) http.Handler {
	return mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server() }, &o))
}

// peers are all the ways for a client to have tasks.
var peers = map[string]func(t testing.TB, s *taskServer) *peer{
	"stdio 2025-11-25": func(t testing.TB, s *taskServer) *peer { return overPipes(t, s.server(), protocol2025) },
	"stdio 2026-07-28": func(t testing.TB, s *taskServer) *peer { return overPipes(t, s.server(), protocol2026) },
	"HTTP stateful, listening": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, shared(t, s, mcp.StreamableHTTPOptions{}), protocol2025, true)
	},
	"HTTP stateful": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, shared(t, s, mcp.StreamableHTTPOptions{}), protocol2025, false)
	},
	"HTTP stateless 2025-11-25": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, shared(t, s, mcp.StreamableHTTPOptions{Stateless: true}), protocol2025, false)
	},
	"HTTP 2026-07-28": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, shared(t, s, mcp.StreamableHTTPOptions{Stateless: true}), protocol2026, false)
	},
	"HTTP 2026-07-28, propagated, JSON": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, shared(t, s, mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, JSONResponse: true}), protocol2026, false)
	},
	"HTTP 2026-07-28, a server per request": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, streamable(s.server, mcp.StreamableHTTPOptions{Stateless: true}), protocol2026, false)
	},
	"HTTP stateless 2025-11-25, a server per request": func(t testing.TB, s *taskServer) *peer {
		return overWeb(t, streamable(s.server, mcp.StreamableHTTPOptions{Stateless: true}), protocol2025, false)
	},
}

func shared(t testing.TB, s *taskServer, o mcp.StreamableHTTPOptions) http.Handler {
	m := s.server()
	t.Cleanup(func() {
		for ss := range m.Sessions() {
			_ = ss.Close()
		}
	})
	return streamable(func() *mcp.Server { return m }, o)
}

// SPEC 11.1 to 11.6, on every transport and protocol version.
func TestTasks(t *testing.T) {
	t.Parallel()
	for name, connect := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			p := connect(t, s)
			for _, tt := range []struct {
				name string
				run  func(*testing.T, *peer, *taskServer)
			}{
				{"result", taskResult}, {"failure", taskFailure}, {"protocol error", taskRefusal}, {"stopped", taskStopped},
				{"cancel", taskCancel}, {"plain", taskPlain}, {"unknown", taskUnknown}, {"only", taskOnly},
			} {
				t.Run(tt.name, func(t *testing.T) {
					p.t = t
					tt.run(t, p, s)
				})
			}
		})
	}
}

func meta(res object, key string) object {
	all, _ := res["_meta"].(object)
	value, _ := all[key].(object)
	return value
}

func taskResult(t *testing.T, p *peer, s *taskServer) {
	h := p.handle(p.call("gated", nil))
	id := h["taskId"]
	if h["status"] != "working" || len(id.(string)) < 26 {
		t.Errorf("handle: %v", h)
	}
	p.says(id, "main.go 3 of 10")
	s.gate <- struct{}{}
	if got := p.final(id)["status"]; got != "completed" {
		t.Error(got)
	}
	res := p.result(id)
	if firstText(res) != "through" {
		t.Error(res)
	}
	if related := meta(res, adapter.RelatedKey); p.version == protocol2025 && related["taskId"] != id {
		t.Errorf("_meta: %v", res["_meta"])
	}
}

// SPEC 7.7, 11.2: an error of the tool is a result; in 2025-11-25 the task has failed.
func taskFailure(t *testing.T, p *peer, s *taskServer) {
	id := p.handle(p.call("fails", nil))["taskId"]
	s.gate <- struct{}{}
	want := "completed"
	if p.version == protocol2025 {
		want = "failed"
	}
	got := p.final(id)
	if got["status"] != want || p.version == protocol2025 && got["statusMessage"] != "disk is full" {
		t.Error(got)
	}
	if res := p.result(id); res["isError"] != true || firstText(res) != "disk is full" {
		t.Error(res)
	}
}

func taskRefusal(t *testing.T, p *peer, s *taskServer) {
	id := p.handle(p.call("refuses", nil))["taskId"]
	s.gate <- struct{}{}
	got := p.final(id)
	if got["status"] != "failed" {
		t.Error(got)
	}
	if p.version == protocol2026 {
		e, _ := got["error"].(object)
		if d := cmp.Diff(object{"code": -32042.0, "message": "not like this", "data": object{"why": "because"}}, e); d != "" {
			t.Error(d)
		}
		return
	}
	m, err := p.do(t.Context(), "tasks/result", object{"taskId": id})
	if err != nil || m.Error == nil || m.Error.Code != -32042 || m.Error.Message != "not like this" {
		t.Errorf("%v, %+v", err, m)
	}
}

// SPEC 11.6: what a limit leaves is what it leaves of a plain call.
func taskStopped(t *testing.T, p *peer, _ *taskServer) {
	id := p.handle(p.call("idle", nil))["taskId"]
	p.final(id)
	res := p.result(id)
	outcome := meta(res, toolcall.OutcomeKey)
	if res["isError"] != true || !strings.HasPrefix(firstText(res), "No progress for 0.15s (idle timeout).") ||
		outcome["kind"] != "idle" || outcome["exitCode"] != 124.0 || !strings.Contains(fmt.Sprint(res["content"]), "two of three files") {
		t.Error(res)
	}
}

// SPEC 11.5
func taskCancel(t *testing.T, p *peer, s *taskServer) {
	id := p.handle(p.call("gated", nil))["taskId"]
	p.says(id, "main.go 3 of 10") // or the tool might not have been called yet, and never be
	res := p.request("tasks/cancel", object{"taskId": id})
	if p.version == protocol2025 && res["status"] != "cancelled" {
		t.Error(res)
	}
	if got := p.request("tasks/get", object{"taskId": id}); got["status"] != "cancelled" {
		t.Error(got)
	}
	select {
	case cause := <-s.ended:
		if !errors.Is(cause, task.ErrCancelled) {
			t.Error(cause)
		}
	case <-time.After(slack):
		t.Fatal("the tool runs on")
	}
	<-s.codes
	if p.version == protocol2025 { // what a plain call would have said is not lost
		result := p.result(id)
		outcome := meta(result, toolcall.OutcomeKey)
		if result["isError"] != true || outcome["kind"] != "aborted" || outcome["exitCode"] != 130.0 ||
			firstText(result) != "Tool was aborted: the task was cancelled\nlast: main.go 3 of 10" || !strings.Contains(fmt.Sprint(result["content"]), "two of three files") {
			t.Error(result)
		}
	}
	if got := p.final(id); got["status"] != "cancelled" {
		t.Error(got)
	}
}

// A call that is over before, or of a tool that is never a task, is what it was.
func taskPlain(t *testing.T, p *peer, s *taskServer) {
	if p.version == protocol2025 { // the client has the say
		m, err := p.do(t.Context(), "tools/call", p.callParams("fast", nil))
		if err != nil || m.Error == nil || m.Error.Code != -32601 || m.Error.Message != `tool "fast" cannot be called as a task` {
			t.Errorf("%v, %+v: a tool that is never a task was called as one", err, m.Error)
		}
	} else if res := p.call("fast", nil); firstText(res) != "fast" || res["resultType"] != "complete" {
		t.Error(res)
	}
	p.plain = true
	defer func() { p.plain = false }()
	go func() { s.gate <- struct{}{} }()
	if res := p.call("gated", nil); firstText(res) != "through" {
		t.Error(res)
	}
}

func taskUnknown(t *testing.T, p *peer, _ *taskServer) {
	for _, method := range adapter.Methods(p.version) {
		if method == "tasks/list" {
			continue
		}
		if m, err := p.do(t.Context(), method, object{"taskId": "nobody's"}); err != nil || m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s: %v, %+v", method, err, m)
		}
	}
	if p.version == protocol2026 {
		for _, method := range []string{"tasks/result", "tasks/list"} {
			if m, err := p.do(t.Context(), method, object{"taskId": "nobody's"}); err != nil || m.Error == nil || m.Error.Code != -32601 {
				t.Errorf("%s: %v, %+v", method, err, m)
			}
		}
	}
}

func taskOnly(t *testing.T, p *peer, s *taskServer) {
	id := p.handle(p.call("only", nil))["taskId"]
	s.gate <- struct{}{}
	if res := p.result(id); firstText(res) != "only" {
		t.Error(res)
	}
	p.plain = true
	defer func() { p.plain = false }()
	m, err := p.do(t.Context(), "tools/call", p.callParams("only", nil))
	want := map[string]string{protocol2025: `-32601 tool "only" can only be called as a task`, protocol2026: "-32021 Missing required client capability"}[p.version]
	if err != nil || m.Error == nil || fmt.Sprint(m.Error.Code, " ", m.Error.Message) != want {
		t.Errorf("%v, %+v", err, m.Error)
	}
}

// SPEC 11.2: what clients look for before they use tasks.
func TestTasksDeclared(t *testing.T) {
	for name, connect := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t, mcpsdk.WithDeclaredLimits())
			p := connect(t, s)
			if p.version == protocol2026 {
				capabilities, _ := p.request("server/discover", nil)["capabilities"].(object)
				extensions, _ := capabilities["extensions"].(object)
				if d := cmp.Diff(object{}, extensions[task.ExtensionID]); d != "" || capabilities["tasks"] != nil {
					t.Error(capabilities)
				}
			}
			tools := make(map[string]object)
			all, _ := p.request("tools/list", nil)["tools"].([]any)
			for _, tool := range all {
				tools[tool.(object)["name"].(string)] = tool.(object)
			}
			for name, want := range map[string]string{"gated": "optional", "asks": "optional", "only": "required", "fast": ""} {
				execution, _ := tools[name]["execution"].(object)
				got, _ := execution["taskSupport"].(string)
				if p.version == protocol2026 {
					want = ""
				}
				if got != want {
					t.Errorf("%s: taskSupport is %q, want %q", name, got, want)
				}
			}
			for name, want := range map[string]any{"gated": 30.0, "asks": 0.0, "only": 30.0, "fast": nil} {
				if got := meta(tools[name], policy.DeclarationKey)["softMs"]; got != want {
					t.Errorf("%s: softMs is %v, want %v", name, got, want)
				}
			}
		})
	}
}

// Where nothing sees that a client of 2025-11-25 asks for a task, none is offered, and nobody gets
// one unasked.
func TestTasksNotWrapped(t *testing.T) {
	for name, connect := range map[string]link{"in-memory": inMemory(protocol2025), "SSE": links["SSE"]} {
		t.Run(name, func(t *testing.T) {
			s := newTaskServer(t)
			cs := connect(t, s.server(), nil)
			go func() { s.gate <- struct{}{} }()
			if d := cmp.Diff([]string{"through"}, texts(call(t, cs, "gated", nil))); d != "" {
				t.Error(d)
			}
		})
	}
	s := newTaskServer(t)
	c := newRawClient(t, s.server(), plain)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if m := c.next(); strings.Contains(string(m.Result), "taskSupport") {
		t.Errorf("%s", m.Result)
	}
}

// SPEC 11.5: after the handle a disconnect means nothing, nor does the end of the session.
func TestTaskOutlivesItsConnection(t *testing.T) {
	for _, tt := range []struct {
		name, version string
		o             mcp.StreamableHTTPOptions
	}{
		{"stateless 2025-11-25", protocol2025, mcp.StreamableHTTPOptions{Stateless: true}},
		{"2026-07-28", protocol2026, mcp.StreamableHTTPOptions{Stateless: true}},
		{"2026-07-28, propagated", protocol2026, mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			h := shared(t, s, tt.o)
			first := overWeb(t, h, tt.version, false)
			id := first.handle(first.call("gated", nil))["taskId"]
			first.close()
			second := overWeb(t, h, tt.version, false)
			if got := second.request("tasks/get", object{"taskId": id}); got["status"] != "working" {
				t.Error(got)
			}
			s.gate <- struct{}{}
			if res := second.result(id); firstText(res) != "through" {
				t.Error(res)
			}
		})
	}
}

// A call that has not become a task yet ends with its client, as before.
func TestAbortBeforeTheHandle(t *testing.T) {
	for name, cause := range map[string]error{"HTTP 2026-07-28": toolcall.ErrDisconnected, "stdio 2026-07-28": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			s := newTaskServer(t)
			p := peers[name](t, s)
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				_, _ = p.do(ctx, "tools/call", p.callParams("patient", nil))
			}()
			<-s.started
			cancel()
			if got := <-s.ended; !errors.Is(got, cause) {
				t.Error(got)
			}
			<-left
		})
	}
}

// SPEC 11.3: a task belongs to its session.
func TestTasksOfOtherSessions(t *testing.T) {
	for name, connect := range map[string]func(testing.TB, *taskServer) *peer{
		"stdio 2025-11-25": peers["stdio 2025-11-25"], "stdio 2026-07-28": peers["stdio 2026-07-28"], "HTTP stateful": peers["HTTP stateful"],
	} {
		t.Run(name, func(t *testing.T) {
			s := newTaskServer(t)
			p, other := connect(t, s), connect(t, s)
			id := p.handle(p.call("gated", nil))["taskId"]
			for _, method := range adapter.Methods(p.version) {
				if method == "tasks/list" {
					if got := other.request(method, nil)["tasks"]; len(got.([]any)) != 0 {
						t.Error(got)
					}
					if got := p.request(method, nil)["tasks"]; len(got.([]any)) != 1 {
						t.Error(got)
					}
					continue
				}
				if m, err := other.do(t.Context(), method, object{"taskId": id}); err != nil || m.Error == nil || m.Error.Code != -32602 {
					t.Errorf("%s: %v, %+v", method, err, m)
				}
			}
			s.gate <- struct{}{}
			p.final(id)
		})
	}
}

// SPEC 11.4: before 2026-07-28 progress goes on with the call's token, where there is a way; from then
// on it does not.
func TestTaskProgress(t *testing.T) {
	for name, more := range map[string]bool{
		"stdio 2025-11-25": true, "stdio 2026-07-28": false, "HTTP stateful, listening": true, "HTTP 2026-07-28": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			m := s.server()
			step := make(chan int)
			m.AddTool(&mcp.Tool{Name: "steps", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for i := range step {
					progress.Report(ctx, progress.Update{Progress: float64(i), Message: fmt.Sprint("step ", i)})
				}
				return textResult("done"), nil
			})
			p := map[bool]func() *peer{
				true: func() *peer { return overPipes(t, m, name[len(name)-10:]) },
				false: func() *peer {
					version, o := protocol2025, mcp.StreamableHTTPOptions{}
					if !more {
						version, o.Stateless = protocol2026, true
					}
					return overWeb(t, streamable(func() *mcp.Server { return m }, o), version, more)
				},
			}[strings.HasPrefix(name, "stdio")]()
			t.Cleanup(func() {
				for ss := range m.Sessions() {
					_ = ss.Close()
				}
			})
			id := p.handle(p.call("steps", nil))["taskId"]
			before := len(p.heard("notifications/progress"))
			for i := range 3 {
				step <- i + 1
				p.says(id, fmt.Sprintf("step %d", i+1))
			}
			// What has not been sent when the tool ends is not sent.
			for begun := time.Now(); more && len(p.heard("notifications/progress")) == before && time.Since(begun) < slack; time.Sleep(ms) {
			}
			close(step)
			p.final(id)
			all := p.heard("notifications/progress")
			if got := len(all) - before; (got > 0) != more {
				t.Errorf("%d notifications after the handle", got)
			}
			for _, n := range all {
				if n.Params["progressToken"] != "t" {
					t.Error(n)
				}
			}
		})
	}
}

// SPEC 11.4: questions of a task.
func TestTaskQuestions(t *testing.T) {
	for name, connect := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			p := connect(t, s)
			if p.version == protocol2025 {
				if strings.Contains(name, "stateless") {
					t.Log("there is no way to ask")
					return
				}
				var asked wireMessage
				p.mu.Lock()
				p.ask = func(m wireMessage) any {
					asked = m
					return object{"action": "accept", "content": object{}}
				}
				p.mu.Unlock()
				id := p.handle(p.call("asks", nil))["taskId"]
				p.until(id, "input_required", "completed")
				res := p.result(id)
				if firstText(res) != "accept as it was" {
					t.Error(res)
				}
				if asked.Method != "elicitation/create" || meta(asked.Params, adapter.RelatedKey)["taskId"] != id || asked.Params["message"] != "the removal of 3 files" {
					t.Errorf("%+v", asked)
				}
				return
			}
			id := p.handle(p.call("asks", nil))["taskId"]
			questions, _ := p.until(id, "input_required")["inputRequests"].(object)
			answers := object{}
			for key, q := range questions {
				if q.(object)["method"] != "elicitation/create" {
					t.Error(q)
				}
				answers[key] = object{"action": "accept", "content": object{}}
			}
			if len(answers) != 1 {
				t.Fatal(questions)
			}
			if d := cmp.Diff(object{"resultType": "complete"}, withoutMeta(p.request("tasks/update", object{"taskId": id, "inputResponses": answers}))); d != "" {
				t.Error(d)
			}
			if res := p.result(id); firstText(res) != "accept as it was" {
				t.Error(res)
			}
		})
	}
}

func withoutMeta(res object) object {
	delete(res, "_meta")
	return res
}

// SPEC 11.7: a call in progress when the server ends is aborted, and a client that still can sees it.
func TestTasksShutdown(t *testing.T) {
	s := newTaskServer(t)
	p := peers["HTTP 2026-07-28"](t, s)
	id := p.handle(p.call("gated", nil))["taskId"]
	p.says(id, "main.go 3 of 10")
	if err := s.tasks.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if cause := <-s.ended; !errors.Is(cause, toolcall.ErrShutdown) {
		t.Error(cause)
	}
	res := p.result(id)
	if outcome := meta(res, toolcall.OutcomeKey); outcome["kind"] != "aborted" || outcome["exitCode"] != 130.0 || res["isError"] != true {
		t.Error(res)
	}
}

// The version that was agreed on counts, and not the one that the client asked for.
func TestTasksOfAnUnknownVersion(t *testing.T) {
	s := newTaskServer(t)
	p := overPipes(t, s.server(), "2099-01-01")
	res := p.call("gated", object{"task": object{}})
	h, _ := res["task"].(object)
	if h["taskId"] == nil {
		t.Fatal(res)
	}
	s.gate <- struct{}{}
	if got := p.final(h["taskId"]); got["status"] != "completed" {
		t.Error(got)
	}
}

// SPEC 11.1, 11.6: a typed Handler under Install becomes a task as any tool does. What it reports and
// returns is the task's, its structured output included, the stop by limits of its own as well, and the
// end of the request that has been answered with the handle is none of its concern.
func TestTypedHandlerAsTask(t *testing.T) {
	const outJSON = `{"count":2,"files":{"a.go":1,"b.go":1}}`
	for _, name := range []string{"stdio 2025-11-25", "stdio 2026-07-28", "HTTP 2025-11-25", "HTTP 2026-07-28"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTaskServer(t)
			m := s.server()
			type input struct {
				Hang bool `json:"hang"`
			}
			mcp.AddTool(m, &mcp.Tool{Name: "steps"}, mcpsdk.Handler(func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, found, error) {
				progress.Report(ctx, progress.Update{Progress: 1, Total: 2, Message: "a.go"})
				if in.Hang {
					<-ctx.Done()
					return nil, partial, nil
				}
				select {
				case <-s.gate:
					return nil, partial, nil
				case <-ctx.Done():
					return nil, partial, ctx.Err()
				}
			}, mcpsdk.WithOptions(timeout.Config{Idle: 3 * time.Second})))
			version := name[len(name)-10:]
			var p *peer
			if strings.HasPrefix(name, "stdio") {
				p = overPipes(t, m, version)
			} else {
				p = overWeb(t, streamable(func() *mcp.Server { return m }, mcp.StreamableHTTPOptions{Stateless: version == protocol2026}), version, false)
			}
			t.Cleanup(func() {
				for ss := range m.Sessions() {
					_ = ss.Close()
				}
			})
			structured := func(res object) string {
				data, _ := json.Marshal(res["structuredContent"])
				return string(data)
			}

			id := p.handle(p.call("steps", object{"arguments": object{"hang": false}}))["taskId"]
			p.says(id, "a.go 1 of 2")
			s.gate <- struct{}{}
			if got := p.final(id)["status"]; got != "completed" {
				t.Error(got)
			}
			if res := p.result(id); firstText(res) != outJSON || structured(res) != outJSON || res["isError"] == true {
				t.Errorf("%v", res)
			}

			id = p.handle(p.call("steps", object{"arguments": object{"hang": true}}))["taskId"]
			p.final(id)
			res := p.result(id)
			outcome := meta(res, toolcall.OutcomeKey)
			if res["isError"] != true || !strings.HasPrefix(firstText(res), "No progress for 3s (idle timeout).") ||
				outcome["kind"] != "idle" || outcome["limitMs"] != 3000.0 || structured(res) != outJSON {
				t.Errorf("%v", res)
			}
		})
	}
}
