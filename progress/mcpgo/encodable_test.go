package mcpgo_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

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
			t.Run(where+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					defer close(release)
					h := mcpgo.Handler(func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return result(&hostileContent{func() { do(release) }}), nil
					}, mcpgo.WithPolicy(&policy.Policy{Default: &timeout.Config{Total: time.Second, Grace: time.Second}}))
					begun := time.Now()
					res, err := h(t.Context(), mcp.CallToolRequest{})
					if took := time.Since(begun); took > 2*time.Second || err != nil || !res.IsError || res.StructuredContent != nil {
						t.Errorf("%+v, %v after %v", res, err, took)
					}
				})
			})
		}
	}
}
