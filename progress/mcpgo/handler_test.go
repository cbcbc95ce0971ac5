package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/mark3labs/mcp-go/client/transport"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A handler in a test of the user's own: no server, no session.
func TestHandlerWithoutServer(t *testing.T) {
	h := mcpgo.Handler(mcp.NewTypedToolHandler(func(ctx context.Context, _ mcp.CallToolRequest, args struct{ N int }) (*mcp.CallToolResult, error) {
		progress.Report(ctx, progress.Update{Progress: float64(args.N)})
		if args.N == 0 {
			return until(ctx)
		}
		return mcp.NewToolResultText("done"), nil
	}), mcpgo.WithPolicy(&policy.Policy{Tools: map[string]policy.Tool{"typed": {Limits: &timeout.Config{Total: 60 * ms}}}}), nil)
	for n, want := range map[int]result{0: stopped("total", "60 60 0", msgTotal), 1: {Texts: []string{"done"}}} {
		res, err := h(context.Background(), call{tool: "typed", args: map[string]any{"n": n}, token: "t"}.request())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, view(t, res), cmp.Transformer("", func(o toolcall.Outcome) string { return o.Kind })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// timeoutMs of a request that was made in this process.
func TestRequestedInProcess(t *testing.T) {
	h := mcpgo.Handler(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		deadline, ok := ctx.Deadline()
		return mcp.NewToolResultText(time.Until(deadline).Round(time.Hour).String()), map[bool]error{false: errOwn}[ok]
	}, mcpgo.WithArgumentTimeout(), mcpgo.WithMetaTimeout(), mcpgo.WithPolicy(&policy.Policy{Default: &timeout.Config{Idle: 2 * time.Minute}}))
	const twoHours = 7_200_000
	for _, tc := range []struct {
		name string
		args any
		meta *mcp.Meta
		want error
	}{
		{"none", nil, nil, errOwn},
		{"other arguments", map[string]any{"n": 1}, &mcp.Meta{}, errOwn},
		{"map", map[string]any{"timeoutMs": twoHours}, nil, nil},
		{"raw", json.RawMessage(`{"timeoutMs":7200000}`), nil, nil},
		{"raw without", json.RawMessage(`{"TIMEOUTMS":7200000}`), nil, errOwn},
		{"meta", nil, &mcp.Meta{AdditionalFields: map[string]any{"timeoutMs": twoHours}}, nil},
	} {
		res, err := h(context.Background(), mcp.CallToolRequest{Params: mcp.CallToolParams{Arguments: tc.args, Meta: tc.meta}})
		if err != tc.want || err == nil && view(t, res).Texts[0] != "2h0m0s" {
			t.Errorf("%s: %v, %v", tc.name, res, err)
		}
	}
	// Without the options a request has no say.
	h = mcpgo.Handler(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, ok := ctx.Deadline()
		return nil, map[bool]error{false: errOwn}[ok]
	}, mcpgo.WithPolicy(&policy.Policy{Default: &timeout.Config{Idle: 2 * time.Minute}}))
	r := call{args: map[string]any{"timeoutMs": twoHours}, meta: map[string]any{"timeoutMs": twoHours}}.request()
	if _, err := h(context.Background(), r); err != errOwn {
		t.Errorf("a request has lifted a limit: %v", err)
	}
}

// The errors to which mcp-go gives a meaning reach it.
func TestOwnErrorKeepsItsMeaning(t *testing.T) {
	want := mcp.URLElicitationRequiredError{Elicitations: []mcp.ElicitationParams{{URL: "https://example.com"}}}
	res := mcp.NewToolResultText("beside it")
	h := mcpgo.Handler(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return res, want })
	got, err := h(context.Background(), mcp.CallToolRequest{})
	if !errors.Is(err, want) || got != res {
		t.Errorf("%v, %v", got, err)
	}
}

// SPEC 7.7.
func TestSetResult(t *testing.T) {
	meta := &mcp.Meta{ProgressToken: "t", AdditionalFields: map[string]any{"k": "v"}}
	content := make([]mcp.Content, 1, 5)
	content[0] = mcp.NewTextContent("half")
	res := &mcp.CallToolResult{Result: mcp.Result{Meta: meta}, Content: content}
	mcpgo.SetResult(res, nil, "x")
	if res.IsError || len(res.Content) != 1 {
		t.Errorf("a nil error makes %+v", res)
	}
	mcpgo.SetResult(res, errOwn, "line 1\nline 2")
	want := result{Texts: []string{"no such file\n\nPartial output:\nline 1\nline 2", "half"}, IsError: true}
	if diff := cmp.Diff(want, view(t, res)); diff != "" || res.Meta != meta {
		t.Errorf("(-want +got):\n%s", diff)
	}
	mcpgo.SetResult(res, &timeout.Error{Kind: timeout.KindAborted}, "")
	if v := view(t, res); v.Outcome != "aborted 130 0 0 0" || v.Texts[0] != "Tool was aborted." || res.Meta.AdditionalFields["k"] != "v" {
		t.Errorf("%+v", v)
	}
	if len(meta.AdditionalFields) != 1 || content[:2][1] != nil {
		t.Error("what was the tool's has been written to")
	}
}

// A tool that was stopped and says so itself, with what it had, has said all there is.
func TestSetResultByTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := mcpgo.Middleware(&policy.Policy{Default: &timeout.Config{Idle: time.Second}})(
			func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				<-ctx.Done()
				res := new(mcp.CallToolResult)
				mcpgo.SetResult(res, context.Cause(ctx), "half")
				return res, nil
			})
		res, err := h(t.Context(), mcp.CallToolRequest{})
		if err != nil {
			t.Fatal(err)
		}
		want := result{
			Texts:   []string{"No progress for 1s (idle timeout). Tool should call heartbeat() during long work.\n\nPartial output:\nhalf"},
			IsError: true, Outcome: "idle 124 1000 0 1000",
		}
		if diff := cmp.Diff(want, view(t, res)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A client in this process gets the values that it always gets.
func TestInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, transport.NewInProcessTransport(newServer()), true)
		var got []map[string]any
		c.OnNotification(func(m mcp.JSONRPCNotification) { got = append(got, m.Params.AdditionalFields) })
		if _, err := c.CallTool(t.Context(), call{tool: "report", args: map[string]any{"lingerMs": 100}, token: "t"}.request()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]map[string]any{{"progressToken": "t", "progress": 1.0, "total": 1.0}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		_ = c.Close()
		time.Sleep(time.Hour)
	})
}

// A call as a task outlives its request, and has limits.
func TestTask(t *testing.T) {
	s := newServer()
	s.AddTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.GetInt("timeoutMs", 0) > 0 {
			return until(ctx)
		}
		time.Sleep(100 * ms) // long after the handle has been sent
		return mcp.NewToolResultText("done"), ctx.Err()
	})
	r := newRaw(t, s)
	for id, tc := range map[float64]struct{ args, want string }{
		1: {`{}`, `"done"`},
		2: {`{"timeoutMs":60}`, msgTotal},
	} {
		r.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"task","task":{},"arguments":%s}}`, id, tc.args))
		_, answer := r.answer(id)
		var handle struct{ Task struct{ TaskID string } }
		if err := json.Unmarshal(answer.Result, &handle); err != nil {
			t.Fatal(err)
		}
		r.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tasks/result","params":{"taskId":%q}}`, id+10, handle.Task.TaskID))
		if _, answer = r.answer(id + 10); !strings.Contains(string(answer.Result), tc.want) {
			t.Errorf("%s: %s %s", tc.args, answer.Result, answer.Error)
		}
	}
}

var _ server.ToolHandlerMiddleware = mcpgo.Middleware(nil)
