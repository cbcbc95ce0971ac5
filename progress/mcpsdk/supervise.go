package mcpsdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// errNoResult is the error of a tool that returns neither a result nor an error. From protocol 2026-07-28 on the SDK
// would panic on a goroutine of its own, and end the process.
var errNoResult = errors.New("the tool has returned no result")

// supervise runs one call of a tool under its limits, and returns the answer for the client.
func (s *settings) supervise(ctx context.Context, run *adapter.Task, answered func(func()), method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	calls, waits := s.Settings(req.Params.Name)
	call := newCall(ctx, req, run, answered, run != nil || waits)
	var near *toolcall.Outcome
	call.NearLimit = func(o toolcall.Outcome) { near = &o }
	res, err := toolcall.Do(ctx, calls, call, func(ctx context.Context) (mcp.Result, error) {
		growStack()
		res, err := next(ctx, method, req)
		if r, ok := res.(*mcp.CallToolResult); ok && err == nil {
			if r == nil {
				return res, errNoResult
			}
			if r, err = encodable(r); err == nil {
				err = r.GetError()
			}
			if err == nil && r.IsError {
				err = toolcall.ErrResult
			}
			res = r
		}
		return res, err
	})
	if err == nil || err == toolcall.ErrResult {
		return nearLimit(res, near), nil
	}
	res, err = answer(req, res, err)
	return nearLimit(res, near), err
}

// nearLimit returns a copy of res with the outcome near of a tool that returned with little of its total left
// (SPEC 7.11). It returns res itself if near is nil, or if res has an outcome or questions.
func nearLimit(res mcp.Result, near *toolcall.Outcome) mcp.Result {
	r, ok := res.(*mcp.CallToolResult)
	if near == nil || !ok || r == nil || r.InputRequests != nil {
		return res
	}
	if _, said := r.Meta[toolcall.OutcomeKey]; said {
		return res
	}
	out := *r // a result may be shared by calls
	out.Meta = withOutcome(out.Meta, *near)
	return &out
}

// encodable returns a result whose structured content and _meta can be marshalled. If one of them cannot, it is
// removed, and the error says so: the SDK would send no answer, and the client would wait for ever. The structured
// content of a typed handler is JSON already; encodable replaces any other by its JSON, so that the SDK does not encode
// it again.
func encodable(r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	if len(r.Meta) > 0 {
		if _, err := json.Marshal(r.Meta); err != nil {
			out := *r
			out.Meta = nil
			return &out, fmt.Errorf("the tool has returned a _meta that is not JSON: %w", err)
		}
	}
	if r.StructuredContent == nil {
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

// whenAnswered returns the Answered field of a toolcall.Call: a function that registers leave to be called when the
// call has been answered. The SDK cancels ctx, its own context of the request, as soon as it has written the answer.
func whenAnswered(ctx context.Context) func(leave func()) {
	return func(leave func()) { context.AfterFunc(ctx, leave) }
}

// newCall describes a call of a tool for toolcall.Do. run is nil if the call cannot become a task.
func newCall(ctx context.Context, req *mcp.CallToolRequest, run *adapter.Task, answered func(func()), outlives bool) toolcall.Call {
	return toolcall.Call{
		Tool: req.Params.Name, Session: req.Session, Token: exactToken(req.Params),
		RequestID: requestID(ctx), SessionID: sessionID(req.Session),
		Meta: req.Params.Meta, Arguments: req.Params.Arguments,
		Answered: answered, Outlives: outlives,
		Send: func(ctx context.Context, n progress.Notification) error {
			return notify(ctx, run, func(ctx context.Context, meta mcp.Meta) error {
				return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					Meta: meta, ProgressToken: n.ProgressToken, Progress: n.Progress, Total: n.Total, Message: n.Message,
				})
			})
		},
	}
}
