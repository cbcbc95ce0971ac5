package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
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
	s := &taskServer{tasks: &task.Tasks{Poll: 20 * ms}, gate: make(chan struct{}), ended: make(chan error, 10), codes: make(chan int, 10), started: make(chan struct{}, 10), polled: make(chan struct{}, 1)}
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

func shared(t testing.TB, s *taskServer, o mcp.StreamableHTTPOptions) http.Handler {
	m := s.server()
	t.Cleanup(func() {
		for ss := range m.Sessions() {
			_ = ss.Close()
		}
	})
	return streamable(func() *mcp.Server { return m }, o)
}

func meta(res object, key string) object {
	all, _ := res["_meta"].(object)
	value, _ := all[key].(object)
	return value
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
