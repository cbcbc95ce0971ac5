package mcpsdk_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A tool that returns nothing at all has failed, and only its call: the SDK panics on such a result.
func TestNoResult(t *testing.T) {
	for _, version := range []string{protocol2025, protocol2026} {
		t.Run(version, func(t *testing.T) {
			s := newServer()
			s.AddTool(&mcp.Tool{Name: "nothing", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, nil
			})
			mcpsdk.Install(s, nil)
			cs := inMemory(version)(t, s, nil)
			if res := call(t, cs, "nothing", nil); !res.IsError || texts(res)[0] != "the tool has returned no result" {
				t.Errorf("%v", texts(res))
			}
		})
	}
}

// A result that is no JSON is a result that says so: the SDK would not answer at all.
func TestResultThatIsNoJSON(t *testing.T) {
	for _, version := range []string{protocol2025, protocol2026} {
		t.Run(version, func(t *testing.T) {
			finished := make(chan error, 1)
			hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished <- s.Err }}
			s := newServer()
			shared := textResult("as text")
			raw := func(name string, structured any) {
				s.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					shared.StructuredContent = structured
					return shared, nil
				})
			}
			raw("broken", map[string]any{"mean": math.NaN()})
			raw("whole", map[string]any{"mean": 0.5})
			mcpsdk.Install(s, nil, mcpsdk.WithOptions(timeout.WithHooks(hooks)))
			cs := inMemory(version)(t, s, nil)
			const text = "the tool has returned a result that is not JSON: json: unsupported value: NaN"
			res := call(t, cs, "broken", nil)
			if d := cmp.Diff([]string{text, "as text"}, texts(res)); d != "" || !res.IsError || res.StructuredContent != nil {
				t.Errorf("%v %v\n%s", res.IsError, res.StructuredContent, d)
			}
			if err := <-finished; err == nil || !strings.Contains(err.Error(), "not JSON") {
				t.Errorf("the hooks got %v", err)
			}
			if shared.IsError {
				t.Error("the tool's own result was written to")
			}
			res = call(t, cs, "whole", nil)
			if d := cmp.Diff(any(map[string]any{"mean": 0.5}), res.StructuredContent); d != "" || res.IsError {
				t.Error(d)
			}
		})
	}
}

// The same for what a tool puts into _meta.
func TestMetaThatIsNoJSON(t *testing.T) {
	for _, version := range []string{protocol2025, protocol2026} {
		t.Run(version, func(t *testing.T) {
			s := newServer()
			s.AddTool(&mcp.Tool{Name: "broken", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				res := textResult("as text")
				res.Meta = mcp.Meta{"mean": math.NaN()}
				return res, nil
			})
			mcpsdk.Install(s, nil)
			res := call(t, inMemory(version)(t, s, nil), "broken", nil)
			const text = "the tool has returned a _meta that is not JSON: json: unsupported value: NaN"
			if d := cmp.Diff([]string{text, "as text"}, texts(res)); d != "" || !res.IsError {
				t.Error(d)
			}
		})
	}
}

// A JSON-RPC error of a tool arrives with its code and its message, also with the code for which the SDK has a
// message of its own.
func TestProtocolErrorKeepsItsWords(t *testing.T) {
	for _, code := range []int64{jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, -32002} {
		fail := &jsonrpc.Error{Code: code, Message: "no such data set"}
		s := newServer()
		s.AddTool(&mcp.Tool{Name: "raw", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, fail })
		mcp.AddTool(s, &mcp.Tool{Name: "typed"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, fail
		})
		mcpsdk.Install(s, nil)
		cs := inMemory(protocol2025)(t, s, nil)
		for _, tool := range []string{"raw", "typed"} {
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
			var got *jsonrpc.Error
			if !errors.As(err, &got) || got.Code != code || got.Message != "no such data set" {
				t.Errorf("%s: %v", tool, err)
			}
		}
	}
}
