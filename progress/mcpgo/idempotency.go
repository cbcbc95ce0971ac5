package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/request"
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
		res, err := s.repeats.Do(ctx, caller, key, p.Meta.AdditionalFields, content, func() (*mcp.CallToolResult, error) { return next(ctx, r) })
		if res != nil {
			out := *res // mcp-go may write to what it sends
			res = &out
		}
		return res, err
	}
}
