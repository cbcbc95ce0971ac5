package mcpsdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// waitForResult is the wait tool.
func (s *settings) waitForResult(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var answers map[string]json.RawMessage
	if req.Params.InputResponses != nil {
		data, err := json.Marshal(req.Params.InputResponses)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &answers); err != nil {
			return nil, err
		}
	}
	fields, err := s.Continuation.Wait(ctx, s.Tasks, s.callerOf(ctx, req.Session, req.Extra, req.Params.Meta), req.Params.Arguments, answers)
	if err != nil {
		return nil, wireError(err)
	}
	return asResult(req, fields)
}

// waitServer is the wait tool's: it has limits of its own, and what it waits for has others.
func waitServer(calls toolcall.Settings) toolcall.Settings {
	calls.Limits = new(timeout.Config)
	calls.MetaTimeout, calls.ArgumentTimeout = false, false
	return calls
}
