package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
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
	case "failure":
		return nil, found{}, errors.New("no such directory")
	case "nested":
		return nil, found{}, timeout.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil }, timeout.Config{Total: time.Second})
	case "protocol":
		return nil, found{}, &jsonrpc.Error{Code: -32002, Message: "not found"}
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
	const partialJSON = `{"count":2,"files":{"a.go":1,"b.go":1}}`
	p := &policy.Policy{Tools: map[string]policy.Tool{"search": {Limits: &timeout.Config{Idle: 5 * time.Second}}}}
	typed := map[string]func(*mcp.Server){
		"Middleware": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "search"}, search)
			s.AddReceivingMiddleware(mcpsdk.Middleware(p))
		},
		"Handler": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, mcpsdk.WithPolicy(p)))
		},
		"both": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "search"}, mcpsdk.Handler(search, mcpsdk.WithPolicy(p)))
			mcpsdk.Install(s, nil)
		},
	}
	for _, tt := range []struct {
		mode       string
		want       []string // by Middleware
		handler    []string // by Handler, where that is different
		structured string
		outcome    any  // the exit code
		alone      bool // Handler without Middleware has no outcome
	}{
		{mode: "ok", want: []string{partialJSON}, structured: partialJSON},
		{mode: "partial", want: []string{stopText, partialJSON}, structured: partialJSON, outcome: 124.0},
		{mode: "content", want: []string{stopText, "found two files"}, structured: partialJSON, outcome: 124.0},
		{mode: "error", want: []string{stopText}, handler: []string{stopText + "\n\nPartial output:\nfound two files"}, outcome: 124.0, alone: true},
		{mode: "bare error", want: []string{stopText}, outcome: 124.0, alone: true},
		{mode: "deaf", want: []string{stopText}, outcome: 124.0, alone: true},
		{mode: "failure", want: []string{"no such directory"}},
		{mode: "nested", want: []string{"Tool exceeded wall-clock limit of 1s."}, outcome: 124.0, alone: true},
		{mode: "panic", want: []string{"panic: at the disco"}},
	} {
		for by, add := range typed {
			for _, version := range protocols {
				t.Run(tt.mode+" "+by+" "+version, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						defer time.Sleep(time.Hour) // for the deaf one to return
						s := newServer()
						add(s)
						cs := inMemory(version)(t, s, nil)
						res, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "search", Arguments: query{tt.mode}})
						if err != nil {
							t.Fatal(err)
						}
						want := tt.want
						if by != "Middleware" && tt.handler != nil {
							want = tt.handler
						}
						if d := cmp.Diff(want, texts(res)); d != "" || res.IsError == (tt.mode == "ok") {
							t.Error(res.IsError, d)
						}
						structured, err := json.Marshal(res.StructuredContent)
						if tt.structured == "" {
							tt.structured = "null"
						}
						if d := cmp.Diff(tt.structured, string(structured)); d != "" || err != nil {
							t.Error(err, d)
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
				})
			}
		}
	}
}

// Trap of the SDK: a handler's JSON-RPC error stays one, and so does a call of a tool that
// there is not.
func TestProtocolErrors(t *testing.T) {
	s := newServer()
	mcp.AddTool(s, &mcp.Tool{Name: "search"}, search)
	mcp.AddTool(s, &mcp.Tool{Name: "wrapped"}, mcpsdk.Handler(search))
	s.AddTool(&mcp.Tool{Name: "raw", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32002, Message: "not found"}
	})
	s.AddTool(&mcp.Tool{Name: "panicky", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic(&jsonrpc.Error{Code: -32002, Message: "not found"})
	})
	mcpsdk.Install(s, nil)
	cs := inMemory(protocol2025)(t, s, nil)
	if res := call(t, cs, "panicky", nil); !res.IsError {
		t.Error("a panic is a result, whatever its value")
	}
	for tool, want := range map[string]int64{"search": -32002, "wrapped": -32002, "raw": -32002, "nowhere": jsonrpc.CodeInvalidParams} {
		_, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: query{"protocol"}})
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != want {
			t.Errorf("%s: got %v, want code %d", tool, err, want)
		}
	}
}

// Handler has an outcome without Middleware where the tool has no output type, and a nil
// result is no obstacle.
func TestHandlerWithoutOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}
		mcp.AddTool(s, &mcp.Tool{Name: "hang"}, mcpsdk.Handler(h, mcpsdk.WithOptions(timeout.Config{Total: time.Second})))
		cs := inMemory(protocol2026)(t, s, nil)
		res := call(t, cs, "hang", nil)
		if d := cmp.Diff([]string{"Tool exceeded wall-clock limit of 1s."}, texts(res)); d != "" || !res.IsError || outcome(res)["kind"] != "total" {
			t.Error(res.IsError, outcome(res), d)
		}
	})
}

// SPEC 7.3: with both, progress is sent once, and the stricter limit holds.
func TestHandlerUnderMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := func(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			for i := range 29 {
				progress.Report(ctx, progress.Update{Progress: float64(i)})
				time.Sleep(time.Second)
			}
			return textResult("done"), nil, nil
		}
		mcp.AddTool(s, &mcp.Tool{Name: "count"}, mcpsdk.Handler(h, mcpsdk.WithOptions(timeout.Config{Idle: 2 * time.Second})))
		mcpsdk.Install(s, &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 3 * time.Second}})
		hd := new(heard)
		cs := inMemory(protocol2025)(t, s, hd.options())
		if res := call(t, cs, "count", "t"); res.IsError {
			t.Error(texts(res))
		}
		synctest.Wait()
		all := hd.list()
		increases(t, all)
		if len(all) != 4 || all[3].Progress != 28 {
			t.Errorf("%d notifications in 29 s, want 3 and the last", len(all))
		}
	})
}

// SetResult leaves what it is given as it was, as results may be shared.
func TestSetResultCopies(t *testing.T) {
	stop := &timeout.Error{Kind: timeout.KindIdle, Limit: time.Second}
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

// A question that comes when the limit has fired is not asked.
func TestQuestionTooLate(t *testing.T) {
	p := &policy.Policy{Default: &timeout.Config{Total: time.Second}}
	late := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return elicitByResult(ctx, req)
	}
	for by, add := range map[string]func(*mcp.Server){
		"Install": func(s *mcp.Server) {
			s.AddTool(&mcp.Tool{Name: "late", InputSchema: anyInput}, late)
			mcpsdk.Install(s, p)
		},
		"Handler": func(s *mcp.Server) {
			mcp.AddTool(s, &mcp.Tool{Name: "late"}, mcpsdk.Handler(func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
				res, err := late(ctx, req)
				return res, nil, err
			}, mcpsdk.WithPolicy(p)))
		},
	} {
		for _, version := range protocols {
			t.Run(by+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					add(s)
					h, takenBack := new(heard), time.Duration(0)
					cs := inMemory(version)(t, s, person(h, time.Second, &takenBack))
					res := call(t, cs, "late", nil)
					if d := cmp.Diff("Tool exceeded wall-clock limit of 1s.", texts(res)[0]); d != "" || !res.IsError {
						t.Error(d)
					}
				})
			})
		}
	}
}
