package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// timeoutMs of a request that was made in this process.
func TestRequestedInProcess(t *testing.T) {
	h := mcpgo.Handler(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		deadline, ok := ctx.Deadline()
		return mcp.NewToolResultText(time.Until(deadline).Round(time.Hour).String()), map[bool]error{false: errOwn}[ok]
	}, &mcpgo.Options{ArgumentTimeout: true, MetaTimeout: true, Limits: &timeout.Config{Idle: 2 * time.Minute}})
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
	}, &mcpgo.Options{Limits: &timeout.Config{Idle: 2 * time.Minute}})
	r := mcp.CallToolRequest{Params: mcp.CallToolParams{Arguments: map[string]any{"timeoutMs": twoHours}, Meta: &mcp.Meta{AdditionalFields: map[string]any{"timeoutMs": twoHours}}}}
	if _, err := h(context.Background(), r); err != errOwn {
		t.Errorf("a request has lifted a limit: %v", err)
	}
}

// The errors to which mcp-go gives a meaning reach it.
func TestOwnErrorKeepsItsMeaning(t *testing.T) {
	want := mcp.URLElicitationRequiredError{Elicitations: []mcp.ElicitationParams{{URL: "https://example.com"}}}
	res := mcp.NewToolResultText("beside it")
	h := mcpgo.Handler(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return res, want }, nil)
	got, err := h(context.Background(), mcp.CallToolRequest{})
	if !errors.Is(err, want) || got != res {
		t.Errorf("%v, %v", got, err)
	}
}

// SPEC 7.7: an error of the supervision becomes a result, also if the tool returns it as its own.
func TestErrorsOfTheSupervision(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{&timeout.Error{Kind: timeout.ErrIdle}, true},
		{fmt.Errorf("the tool: %w", &timeout.Error{Kind: timeout.ErrAborted}), true},
		{&timeout.PanicError{Value: "boom"}, true},
		{&timeout.ConfigError{Key: "timeoutMs"}, true},
		{timeout.ErrGoexit, true},
		{errOwn, false},
		{context.Canceled, false},
	} {
		h := mcpgo.Handler(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, tc.err }, nil)
		res, err := h(t.Context(), mcp.CallToolRequest{})
		if got := err == nil && res != nil && res.IsError; got != tc.want || !got && !errors.Is(err, tc.err) {
			t.Errorf("%v: %v, %v", tc.err, res, err)
		}
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
	mcpgo.SetResult(res, &timeout.Error{Kind: timeout.ErrAborted}, "")
	if v := view(t, res); v.Outcome != "aborted 130 0 0 0" || v.Texts[0] != "Tool was aborted." || res.Meta.AdditionalFields["k"] != "v" {
		t.Errorf("%+v", v)
	}
	if len(meta.AdditionalFields) != 1 || content[:2][1] != nil {
		t.Error("what was the tool's has been written to")
	}
}

// A client in this process gets the values that it always gets.
func TestInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, transport.NewInProcessTransport(newServer(reports, nil)), true)
		var got []map[string]any
		c.OnNotification(func(m mcp.JSONRPCNotification) { got = append(got, m.Params.AdditionalFields) })
		if _, err := callTool(t.Context(), c, "tool", "t"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]map[string]any{{"progressToken": "t", "progress": 1.0}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		_ = c.Close()
		time.Sleep(time.Hour)
	})
}

// A hostileContent is a tool's result that does what the test wants when it is encoded.
type hostileContent struct{ do func() }

func (c *hostileContent) MarshalJSON() ([]byte, error) { c.do(); return []byte("{}"), nil }

// SPEC 3.24: the structured content of a result is encoded under the tool's limits, before mcp-go does it where
// nobody recovers.
func TestHostileContent(t *testing.T) {
	for how, do := range map[string]func(release chan struct{}){
		"block":  func(release chan struct{}) { <-release },
		"panic":  func(chan struct{}) { panic("hostile") },
		"Goexit": func(chan struct{}) { runtime.Goexit() },
	} {
		for where, result := range map[string]func(c *hostileContent) *mcp.CallToolResult{
			"content": func(c *hostileContent) *mcp.CallToolResult { return &mcp.CallToolResult{StructuredContent: c} },
			"_meta": func(c *hostileContent) *mcp.CallToolResult {
				return &mcp.CallToolResult{Result: mcp.Result{Meta: &mcp.Meta{AdditionalFields: map[string]any{"a": c}}}}
			},
		} {
			sdktest.Bubble(t, where+" "+how, func(t *testing.T) {
				release := make(chan struct{})
				defer close(release)
				h := mcpgo.Handler(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return result(&hostileContent{func() { do(release) }}), nil
				}, &mcpgo.Options{Limits: &timeout.Config{Total: time.Second, Grace: time.Second}})
				begun := time.Now()
				res, err := h(t.Context(), mcp.CallToolRequest{})
				if took := time.Since(begun); took > 2*time.Second || err != nil || !res.IsError || res.StructuredContent != nil {
					t.Errorf("%+v, %v after %v", res, err, took)
				}
			})
		}
	}
}

// refused checks that a constructor panics with a *timeout.ConfigError, and for which key.
func refused(t *testing.T, key string, construct func()) {
	t.Helper()
	defer func() {
		if bad, ok := recover().(*timeout.ConfigError); !ok || bad.Key != key || bad.Accepted == "" {
			t.Errorf("%#v, want a ConfigError for %s", bad, key)
		}
	}()
	construct()
}

// What contradicts itself, or does nothing, is refused when the server is set up.
func TestRefusedOptions(t *testing.T) {
	limits, s := new(timeout.Config), server.NewMCPServer("s", "1")
	refused(t, "server", func() { mcpgo.Install(nil, nil) })
	refused(t, "handler", func() { mcpgo.Handler(nil, nil) })
	refused(t, "transport", func() { mcpgo.Limit(nil, nil) })
	refused(t, "Options.Limits", func() { mcpgo.Install(s, &mcpgo.Options{Limits: limits, Policy: new(policy.Policy)}) })
	refused(t, "Options.Methods", func() { mcpgo.Install(s, &mcpgo.Options{Methods: map[string]policy.Declaration{}}) })
	nobody := func(context.Context) string { return "" }
	refused(t, "Options.Principal", func() { mcpgo.Install(s, &mcpgo.Options{Principal: nobody}) })
	refused(t, "Options.Requests", func() { mcpgo.Install(s, &mcpgo.Options{Requests: new(progress.Wait)}) })
	for field, o := range map[string]*mcpgo.Options{
		"Requests": {Requests: new(progress.Wait)},
		"Declare":  {Declare: true}, "Methods": {Methods: map[string]policy.Declaration{}}, "Tasks": {Tasks: new(task.Tasks)}, "Continuation": {Continuation: new(mcpgo.Continuation)},
		"Idempotency": {Idempotency: true}, "Principal": {Principal: nobody},
	} {
		refused(t, "Options."+field, func() { mcpgo.Handler(silent, o) })
	}
	for _, o := range []*mcpgo.Options{{Tasks: new(task.Tasks)}, {Continuation: new(mcpgo.Continuation)}, {Idempotency: true}} {
		o.Principal = nobody
		mcpgo.Install(server.NewMCPServer("s", "1"), o)
	}
}

// Without a server there is nobody to ask.
func TestAskWithoutAServer(t *testing.T) {
	if _, err := mcpgo.Elicit(t.Context(), mcp.ElicitationRequest{}, progress.Wait{}); err != server.ErrNoActiveSession {
		t.Error(err)
	}
	if _, err := mcpgo.Sample(t.Context(), mcp.CreateMessageRequest{}, progress.Wait{}); err != server.ErrNoActiveSession {
		t.Error(err)
	}
}
