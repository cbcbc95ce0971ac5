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
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Install runs every tool call of s as an execution under the limits of o. In the tool's context, package heartbeat and
// [progress.Report] renew the idle limit, and reach the client as notifications if its request has a progress token. A
// server needs nothing else:
//
//	mcpsdk.Install(server, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Minute}})
//
// The result that the client gets is what a tool returns in time; what [SetResult] makes of the error and of what a tool
// returned that was stopped, where a typed handler must return a nil error with its result, or the SDK drops that; and for
// a tool that panics, or a mcp.ToolHandler that returns an error, a result whose IsError is true, with the text of the
// error. A *jsonrpc.Error is returned unchanged.
//
// While a tool waits for a person in ServerSession.Elicit, the idle check is held, as [progress.Await] does it. If the tool
// has called Await itself, or asks within an execution that it has begun, the limits of that execution apply. All methods
// but those of tools and of what o asks for pass through unchanged.
//
// Middleware that was added to s before is supervised too; middleware that is added later is not, and with Tasks must not
// assume that the results of tools/call, tools/list and initialize have the SDK's types. Install panics with a
// [*timeout.ConfigError] if s is nil, if o contradicts itself, or if the SDK is one that it does not know.
func Install(s *mcp.Server, o *Options) {
	if s == nil {
		panic(&timeout.ConfigError{Key: "server", Value: "nil", Accepted: "a server"})
	}
	checkSDK()
	set := newSettings(o)
	set.installTasks(s)
	s.AddReceivingMiddleware(set.middleware)
	s.AddSendingMiddleware(set.middleware)
}

func (s *settings) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			return s.callOnce(ctx, method, r, next)
		case *mcp.ServerRequest[*taskParams]:
			if s.Offered {
				return s.serveTask(ctx, method, r)
			}
		}
		out := next
		if s.Tasks != nil {
			out = func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				return send(ctx, method, req, next)
			}
		}
		if question, ok := req.GetParams().(*mcp.ElicitParams); ok && method == methodElicit {
			return s.elicit(ctx, req.GetSession(), question, func(ctx context.Context) (mcp.Result, error) {
				return out(ctx, method, req)
			})
		}
		if s.holds(ctx, method, req) {
			return s.request(ctx, req.GetSession(), method, func(ctx context.Context) (mcp.Result, error) {
				return out(ctx, method, req)
			})
		}
		res, err := out(ctx, method, req)
		if err == nil && s.Hosts {
			switch res.(type) {
			case *mcp.InitializeResult, *mcp.DiscoverResult:
				s.Initialized(clientOf(req))
			}
		}
		if err == nil && s.Declare {
			res = s.declared(res)
		}
		if err == nil && s.Tasks != nil {
			res = s.withTasks(ctx, req, res)
		}
		return res, err
	}
}

// errNoResult is for a tool that returns neither a result nor an error: with protocol 2026-07-28 the
// SDK panics on that, outside of the call, and takes the process down.
var errNoResult = errors.New("the tool has returned no result")

// supervise runs one call of a tool.
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

// nearLimit returns the result with the outcome of a tool that has returned with little of its total
// left (SPEC 7.11), unless it has one of its own.
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

// encodable returns a result whose structured content and _meta can be sent: for one that is no JSON, such as
// NaN, the SDK has no answer at all, and the client would wait for ever. That of a typed handler has
// been encoded already, and what is encoded here is not encoded again.
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

// whenAnswered has a function called once a call has been answered: the context is the SDK's own,
// which it cancels as soon as it has written the answer.
func whenAnswered(ctx context.Context) func(leave func()) {
	return func(leave func()) { context.AfterFunc(ctx, leave) }
}

// newCall is what is the same for Install and for Handler.
func newCall(ctx context.Context, req *mcp.CallToolRequest, run *adapter.Task, answered func(func()), outlives bool) toolcall.Call {
	return toolcall.Call{
		Tool: req.Params.Name, Session: req.Session, Token: exactToken(req.Params),
		RequestID: requestID(ctx), SessionID: sessionID(req.Session),
		Meta: req.Params.Meta, Arguments: req.Params.Arguments,
		Answered: answered, Observer: run.Observer(), Outlives: outlives,
		Send: func(ctx context.Context, n progress.Notification) error {
			return notify(ctx, run, func(ctx context.Context) error {
				return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					Meta: relatedTo(run), ProgressToken: n.ProgressToken, Progress: n.Progress, Total: n.Total, Message: n.Message,
				})
			})
		},
	}
}
