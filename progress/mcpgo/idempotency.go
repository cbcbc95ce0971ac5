package mcpgo

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// once is a call that may have come before.
func (s *settings) once(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	if s.repeats == nil {
		return next
	}
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p := r.Params
		key := ""
		if p.Meta != nil {
			key, _ = p.Meta.AdditionalFields[request.IdempotencyKey].(string)
		}
		if key == "" || p.Task != nil {
			return next(ctx, r)
		}
		caller := s.client(ctx)
		content := []any{p.Name, p.Arguments, p.InputResponses, p.RequestState}
		res, err := s.repeats.Do(ctx, caller, key, p.Meta.AdditionalFields, content, func(res *mcp.CallToolResult) int { return sizeOfAnswer(res, p.Meta.AdditionalFields) }, func() (*mcp.CallToolResult, error) { return next(ctx, r) })
		if res != nil {
			out := *res // mcp-go may write to what it sends
			res = &out
		}
		return res, err
	}
}

// sizeOfAnswer returns how many bytes an answer takes, and less than 0 for one that is not to be kept.
func sizeOfAnswer(r *mcp.CallToolResult, meta map[string]any) int {
	if r == nil || r.NeedsInput() {
		return -1
	}
	if r.Meta != nil {
		if o, ok := r.Meta.AdditionalFields[toolcall.OutcomeKey].(toolcall.Outcome); ok && (o.ExitCode == timeout.ExitAborted || adapter.Hurried(o, meta)) {
			return -1
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return -1
	}
	return len(data)
}
