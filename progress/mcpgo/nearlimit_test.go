package mcpgo_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// SPEC 7.11: a result that comes with less than a tenth of the total left says what was left. The limit is
// long, so that a busy machine does not reach it.
func TestNearLimit(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.AddTool(mcp.NewTool("near"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		deadline, _ := ctx.Deadline()
		time.Sleep(time.Until(deadline) - 2600*ms)
		return mcp.NewToolResultText("done"), nil
	})
	c := named("wrapped 2026")[0].connect(t, s)
	long, cancel := context.WithTimeout(t.Context(), 3*slack)
	defer cancel()
	res, err := c.CallTool(long, call{tool: "near", args: map[string]any{"timeoutMs": 28000}}.request())
	if err != nil {
		t.Fatal(err)
	}
	var o toolcall.Outcome
	data, _ := json.Marshal(res.Meta.GetMetaField(toolcall.OutcomeKey))
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	if o.Kind != "returned" || o.Left == nil || *o.Left > 2600 || o.Total != 28000 || res.IsError {
		t.Errorf("%s %v", data, res.IsError)
	}
	res, err = c.CallTool(soon(t), call{tool: "noop"}.request())
	if err != nil || res.Meta != nil && res.Meta.GetMetaField(toolcall.OutcomeKey) != nil {
		t.Errorf("%+v, %v", res, err)
	}
}
