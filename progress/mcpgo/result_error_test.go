package mcpgo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A tool that says in its result that it has failed has failed for the hooks too. The client
// gets the result as it is.
func TestErrorResultForHooks(t *testing.T) {
	var finished error
	hooks := timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { finished = s.Err }}
	own := mcp.NewToolResultError("no such file")
	h := mcpgo.Handler(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return own, nil },
		mcpgo.WithOptions(timeout.WithHooks(hooks)))
	res, err := h(t.Context(), call{tool: "read"}.request())
	if res != own || err != nil || !errors.Is(finished, toolcall.ErrResult) {
		t.Errorf("%v, %v; the hooks got %v", res, err, finished)
	}
}
