package mcpsdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
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
	caller := s.callerOf(ctx, req.Session, req.Extra, p.Meta)
	content := []any{p.Name, p.Arguments, p.InputResponses, p.RequestState}
	res, err := s.repeats.Do(ctx, caller, key, p.Meta, content, func(res mcp.Result) int { return sizeOfAnswer(res, p.Meta) }, func() (mcp.Result, error) { return s.call(ctx, method, req, next) })
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

// sizeOfAnswer returns how many bytes an answer takes, and less than 0 for one that is not to be kept.
func sizeOfAnswer(res mcp.Result, meta map[string]any) int {
	if r, ok := res.(*mcp.CallToolResult); ok {
		if r == nil || r.InputRequests != nil {
			return -1
		}
		if o, ok := r.Meta[toolcall.OutcomeKey].(toolcall.Outcome); ok && (o.ExitCode == timeout.ExitAborted || adapter.Hurried(o, meta)) {
			return -1
		}
	}
	data, err := json.Marshal(res)
	if err != nil {
		return -1
	}
	return len(data)
}
