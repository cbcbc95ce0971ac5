package mcpsdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
	fields, err := s.Continuation.Wait(ctx, s.Tasks, s.callerOf(ctx, req), req.Params.Arguments, answers)
	if err != nil {
		return nil, wireError(err)
	}
	return asResult(req, fields)
}
