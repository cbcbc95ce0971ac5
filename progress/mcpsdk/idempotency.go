package mcpsdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// callOnce answers a tools/call that may have come before.
func (s *settings) callOnce(ctx context.Context, method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	if s.repeats == nil {
		return s.call(ctx, method, req, next)
	}
	p := req.Params
	key, _ := p.Meta[request.IdempotencyKey].(string)
	if key == "" {
		return s.call(ctx, method, req, next)
	}
	caller := s.callerOf(ctx, req)
	content := []any{p.Name, p.Arguments, p.InputResponses, p.RequestState}
	res, err := s.repeats.Do(ctx, caller, key, p.Meta, content, func() (mcp.Result, error) { return s.call(ctx, method, req, next) })
	// The SDK writes to what it sends.
	switch r := res.(type) {
	case *mcp.CallToolResult:
		if r != nil {
			out := *r
			return &out, err
		}
	case *wireResult:
		return &wireResult{fields: r.fields}, err
	}
	return res, err
}
