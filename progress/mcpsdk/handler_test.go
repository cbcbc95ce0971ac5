package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type query struct {
	Mode string `json:"mode"`
}

// found is an output whose zero value its schema refuses: Files must be an object.
type found struct {
	Count int            `json:"count"`
	Files map[string]int `json:"files"`
}

var partial = found{Count: 2, Files: map[string]int{"a.go": 1, "b.go": 1}}

const partialJSON = `{"count":2,"files":{"a.go":1,"b.go":1}}`

// search is a tool with an output schema, which ends in as many ways as there are.
func search(ctx context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, found, error) {
	switch in.Mode {
	case "ok":
		return nil, partial, nil
	case "partial":
		<-ctx.Done()
		return nil, partial, nil
	case "content":
		<-ctx.Done()
		return textResult("found two files"), partial, nil
	case "error":
		<-ctx.Done()
		return textResult("found two files"), partial, ctx.Err()
	case "bare error":
		<-ctx.Done()
		return nil, found{}, ctx.Err()
	case "late question":
		<-ctx.Done()
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "?"}}}, partial, nil
	case "near", "near failure":
		_ = sdktest.Sleep(ctx, 9*time.Second+time.Millisecond)
		if in.Mode == "near failure" {
			return nil, found{}, errors.New("no such directory")
		}
		return nil, partial, nil
	case "failure":
		return nil, found{}, errors.New("no such directory")
	case "nested":
		return nil, found{}, timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: time.Second})
	case "panic":
		panic("at the disco")
	}
	time.Sleep(time.Hour) // deaf
	return nil, partial, nil
}

// SPEC 7.7: typed handlers with an output schema, under either way to supervise them. An
// answer is never a JSON-RPC error because of the schema.
func TestTypedHandler(t *testing.T) {
	const stopText = "No progress for 5s (idle timeout). Tool should call heartbeat() during long work."
	p := &policy.Policy{Tools: map[string]policy.Tool{"search": {Limits: &timeout.Config{Idle: 5 * time.Second}}}}
	typed := map[string]func(*mcp.Server){
		"Install": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "search"}, search)
			mcpsdk.Install(s, &mcpsdk.Options{Policy: p})
		},
		"Handler": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, &mcpsdk.Options{Policy: p}))
		},
		"both": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, &mcpsdk.Options{Policy: p}))
			mcpsdk.Install(s, nil)
		},
	}
	for _, tt := range []struct {
		mode    string
		want    []string // by Install
		handler []string // by Handler, where that is different
		outcome any      // the exit code
		alone   bool     // Handler without Install has no outcome
	}{
		{mode: "ok", want: []string{partialJSON}},
		{mode: "partial", want: []string{stopText, partialJSON}, outcome: 124.0},
		{mode: "content", want: []string{stopText, "found two files"}, outcome: 124.0},
		{mode: "error", want: []string{stopText}, handler: []string{stopText + "\n\nPartial output:\nfound two files"}, outcome: 124.0, alone: true},
		{mode: "bare error", want: []string{stopText}, outcome: 124.0, alone: true},
		{mode: "deaf", want: []string{stopText}, outcome: 124.0, alone: true},
		{mode: "late question", want: []string{stopText}, handler: []string{stopText, partialJSON}, outcome: 124.0},
		{mode: "failure", want: []string{"no such directory"}},
		{mode: "nested", want: []string{"Tool exceeded wall-clock limit of 1s."}, outcome: 124.0, alone: true},
		{mode: "panic", want: []string{"panic: at the disco"}},
	} {
		for by, add := range typed {
			for _, version := range protocols {
				sdktest.Bubble(t, tt.mode+" "+by+" "+version, func(t *testing.T) {
					defer time.Sleep(time.Hour) // for the deaf one to return
					s := newTestServer()
					add(s)
					cs := connectClient(t, newTestClient(nil), s, version)
					res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "search", Arguments: query{tt.mode}})
					if err != nil {
						t.Fatal(err)
					}
					want := tt.want
					if by != "Install" && tt.handler != nil {
						want = tt.handler
					}
					if d := cmp.Diff(want, texts(res)); d != "" || res.IsError == (tt.mode == "ok") {
						t.Error(res.IsError, d)
					}
					structured, err := json.Marshal(res.StructuredContent)
					if made := tt.mode == "content" || slices.Contains(want, partialJSON); err != nil || string(structured) != map[bool]string{false: "null", true: partialJSON}[made] {
						t.Errorf("%s, %v", structured, err)
					}
					code := outcome(res)["exitCode"]
					if by == "Handler" && tt.alone {
						if code != nil {
							t.Error("there is an outcome after all: say so in the documentation")
						}
					} else if code != tt.outcome {
						t.Errorf("exit code %v, want %v", code, tt.outcome)
					}
				})
			}
		}
	}
}

// SPEC 7.11: a typed handler's result that comes with less than a tenth of the total left says what was left.
func TestTypedNearLimit(t *testing.T) {
	limits := &policy.Policy{Default: &timeout.Config{Total: 10 * time.Second}}
	for _, tt := range []struct {
		mode    string
		handler bool
		code    float64
	}{{"near", false, 0}, {"near failure", false, 1}, {"near", true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestServer()
			if tt.handler {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, &mcpsdk.Options{Policy: limits}))
			} else {
				mcp.AddTool(s, &mcp.Tool{Name: "search"}, search)
				mcpsdk.Install(s, &mcpsdk.Options{Policy: limits})
			}
			res, err := connectClient(t, newTestClient(nil), s, protocol2025).CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: query{tt.mode}})
			if err != nil {
				t.Fatal(err)
			}
			if o := outcome(res); o["kind"] != "returned" || o["exitCode"] != tt.code || o["leftMs"] != 999.0 || res.IsError != (tt.code == 1) {
				t.Errorf("%s, handler=%v: %v", tt.mode, tt.handler, o)
			}
		})
	}
}

// A handler's JSON-RPC error stays one, with its code and its message, also with the code for which the SDK has a message
// of its own, and so does a call of a tool that there is not. A panic is a result, whatever its value.
func TestProtocolErrors(t *testing.T) {
	for _, code := range []int64{jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, -32002} {
		fail := &jsonrpc.Error{Code: code, Message: "no such data set"}
		typed := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, fail
		}
		s := newTestServer()
		mcp.AddTool(s, &mcp.Tool{Name: "typed"}, typed)
		mcp.AddTool(s, &mcp.Tool{Name: "wrapped"}, mcpsdk.Handler(typed, nil))
		addTool(s, "raw", func(context.Context, func(float64, string)) error { return fail })
		addTool(s, "panicky", func(context.Context, func(float64, string)) error { panic(fail) })
		mcpsdk.Install(s, nil)
		cs := connectClient(t, newTestClient(nil), s, protocol2025)
		if res := call(t, cs, "panicky", nil); !res.IsError {
			t.Error("a panic is no result")
		}
		for _, tool := range []string{"typed", "wrapped", "raw", "nowhere"} {
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
			want := fail
			if tool == "nowhere" {
				want = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: `unknown tool "nowhere"`}
			}
			var got *jsonrpc.Error
			if !errors.As(err, &got) || got.Code != want.Code || got.Message != want.Message {
				t.Errorf("%s: %v", tool, err)
			}
		}
	}
}

// A result that the SDK cannot encode, or panics on, is one that says so; the tool's own is not written to.
func TestResultThatIsNoJSON(t *testing.T) {
	for _, version := range protocols {
		for name, tt := range map[string]struct {
			res  *mcp.CallToolResult
			want []string
		}{
			"none":    {nil, []string{"the tool has returned no result"}},
			"content": {&mcp.CallToolResult{Content: textResult("as text").Content, StructuredContent: map[string]any{"mean": math.NaN()}}, []string{"the tool has returned a result that is not JSON: json: unsupported value: NaN", "as text"}},
			"_meta":   {&mcp.CallToolResult{Content: textResult("as text").Content, Meta: mcp.Meta{"mean": math.NaN()}}, []string{"the tool has returned a _meta that is not JSON: json: unsupported value: NaN", "as text"}},
			"whole":   {&mcp.CallToolResult{Content: textResult("as text").Content, StructuredContent: map[string]any{"mean": 0.5}}, []string{"as text"}},
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				finished := make(chan error, 1)
				s := newTestServer()
				s.AddTool(&mcp.Tool{Name: "t", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return tt.res, nil })
				mcpsdk.Install(s, &mcpsdk.Options{Hooks: timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished <- s.Err }}})
				res := call(t, connectClient(t, newTestClient(nil), s, version), "t", nil)
				if d := cmp.Diff(tt.want, texts(res)); d != "" || res.IsError != (name != "whole") || (res.StructuredContent != nil) != (name == "whole") {
					t.Errorf("%v %v %s", res.IsError, res.StructuredContent, d)
				}
				if err := <-finished; (err != nil) != res.IsError {
					t.Errorf("the hooks got %v", err)
				}
				if tt.res != nil && (tt.res.IsError || len(tt.res.Content) != 1) {
					t.Error("the tool's own result was written to")
				}
			})
		}
	}
}

// Handler has an outcome without Install where the tool has no output type, and a nil
// result is no obstacle.
func TestHandlerWithoutOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		h := func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}
		mcp.AddTool(s, &mcp.Tool{Name: "hang"}, mcpsdk.Handler(h, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Second}}))
		cs := connectClient(t, newTestClient(nil), s, protocol2026)
		res := call(t, cs, "hang", nil)
		if d := cmp.Diff([]string{"Tool exceeded wall-clock limit of 1s."}, texts(res)); d != "" || !res.IsError || outcome(res)["kind"] != "total" {
			t.Error(res.IsError, outcome(res), d)
		}
	})
}

// SPEC 7.3: with both, progress is sent once, and the stricter limit holds.
func TestHandlerUnderInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		h := func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			for i := range 29 {
				progress.Report(ctx, progress.Update{Progress: float64(i)})
				time.Sleep(time.Second)
			}
			return textResult("done"), nil, nil
		}
		mcp.AddTool(s, &mcp.Tool{Name: "count"}, mcpsdk.Handler(h, &mcpsdk.Options{Limits: &timeout.Config{Idle: 2 * time.Second}}))
		mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Minute, Idle: 3 * time.Second}})
		hd := new(heard)
		cs := connectClient(t, newTestClient(hd.options()), s, protocol2025)
		if res := call(t, cs, "count", "t"); res.IsError {
			t.Error(texts(res))
		}
		synctest.Wait()
		all := hd.list()
		if len(all) != 4 || all[3].Progress != 28 {
			t.Errorf("%d notifications in 29 s, want 3 and the last", len(all))
		}
	})
}

// SetResult leaves what it is given as it was, as results may be shared.
func TestSetResultCopies(t *testing.T) {
	stop := &timeout.Error{Kind: timeout.ErrIdle, Limit: time.Second}
	content := make([]mcp.Content, 1, 8)
	content[0] = &mcp.TextContent{Text: "first"}
	meta := mcp.Meta{"mine": 1}
	for range 2 {
		res := &mcp.CallToolResult{Content: content, Meta: meta, StructuredContent: 7}
		mcpsdk.SetResult(res, stop, "half a page")
		want := []string{stop.Error() + "\n\nPartial output:\nhalf a page", "first"}
		if d := cmp.Diff(want, texts(res)); d != "" || !res.IsError || res.StructuredContent != 7 || res.GetError() != error(stop) {
			t.Error(d, res)
		}
		if len(res.Meta) != 2 || len(meta) != 1 || content[0].(*mcp.TextContent).Text != "first" {
			t.Errorf("meta %v, given %v, content %v", res.Meta, meta, texts(res))
		}
	}
	res := textResult("fine")
	mcpsdk.SetResult(res, nil, "")
	if res.IsError || len(res.Content) != 1 {
		t.Error("a nil error is no failure")
	}
	mcpsdk.SetResult(res, errors.New("plain"), "")
	if !res.IsError || res.Meta != nil {
		t.Error("a plain error has no outcome", res.Meta)
	}
}
