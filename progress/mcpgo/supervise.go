package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// supervise runs a call under its limits, and returns the answer for the client.
func (s *settings) supervise(ctx context.Context, id string, run *adapter.Task, request mcp.CallToolRequest, next server.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	n := newNotifications(ctx, run, request.Header)
	if outer := toolcall.FromContext(ctx); id == "" && outer != nil && outer.Session == n.session {
		id = outer.RequestID // this is a Handler under Install, which has taken the id from the request
	}
	calls, waits := s.Settings(request.Params.Name)
	call := toolcall.Call{
		Tool: request.Params.Name, Session: n.session, Token: token(request.Params.Meta), Send: n.send,
		Arguments: request.Params.Arguments, Answered: n.answered(), Outlives: run != nil || waits,
		RequestID: id, SessionID: sessionIDOf(n.session),
	}
	if request.Params.Meta != nil {
		call.Meta = request.Params.Meta.AdditionalFields
	}
	var near *toolcall.Outcome
	call.NearLimit = func(o toolcall.Outcome) { near = &o }
	res, err := toolcall.Do(ctx, calls, call, func(ctx context.Context) (*mcp.CallToolResult, error) {
		res, err := s.callWithAnswers(ctx, request, next)
		if err == nil {
			res, err = encodable(res)
		}
		if err == nil && res != nil && res.IsError {
			err = toolcall.ErrResult
		}
		return res, err
	})
	n.end()
	if err == toolcall.ErrResult {
		err = nil
	}
	res, err = answer(res, err)
	return nearLimit(res, near), err
}

// encodable returns a result whose structured content and _meta can be marshalled. If one of them cannot, it is
// removed, and the error says so. encodable runs under the limits of the tool. mcp-go itself marshals results on its
// few workers, where a method that blocks occupies a worker for ever, and a panic ends the process.
func encodable(r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	if r == nil {
		return r, nil
	}
	if r.Meta != nil {
		if _, err := json.Marshal(r.Meta); err != nil {
			out := *r
			out.Meta = nil
			return &out, fmt.Errorf("the tool has returned a _meta that is not JSON: %w", err)
		}
	}
	if r.StructuredContent == nil || len(r.RawStructuredContent) > 0 {
		return r, nil
	}
	if _, done := r.StructuredContent.(json.RawMessage); done {
		return r, nil
	}
	data, err := json.Marshal(r.StructuredContent)
	out := *r // a result may be shared by calls
	if err != nil {
		out.StructuredContent = nil
		return &out, fmt.Errorf("the tool has returned a result that is not JSON: %w", err)
	}
	out.StructuredContent = json.RawMessage(data)
	return &out, nil
}
