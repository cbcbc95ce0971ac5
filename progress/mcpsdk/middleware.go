package mcpsdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Install puts [Middleware] into s, as receiving and as sending middleware. It is all that
// a server needs:
//
//	mcpsdk.Install(server, &timeout.Policy{Default: timeout.FastTools()})
//
// Middleware that was added before it is supervised too; what is added after it is not.
func Install(s *mcp.Server, p *timeout.Policy, opts ...Option) {
	m := Middleware(p, opts...)
	s.AddReceivingMiddleware(m)
	s.AddSendingMiddleware(m)
}

// Middleware runs every tool call of a server as an execution under the limits that p has
// for the tool; a nil p is a zero one. In the tool's context, package heartbeat and
// [progress.Report] renew the idle limit, and reach a client whose request has a progress
// token as notifications.
//
// What the client gets as the result:
//
//   - of a tool that returns in time, what the tool returned;
//   - of one that was stopped, what [SetResult] makes of the error and of what the tool
//     returned when its context was cancelled. A typed handler must return a nil error
//     along with it, or the SDK drops it;
//   - of one that panics, or of a mcp.ToolHandler that returns an error, a result whose
//     IsError is true, with the text of the error. But a *jsonrpc.Error stays one.
//
// Added with AddReceivingMiddleware it does all of that. With AddSendingMiddleware it also
// holds the idle check while a tool waits for a person in ServerSession.Elicit, as
// [progress.Await] does, with its limit of 30 s, see [WithAwait]. Where the tool has called
// Await itself, or runs the question under another execution of its own, the limits are
// that one's. [Install] does both. Methods other than these pass through untouched.
//
// It is safe for concurrent use, and may be shared by servers.
func Middleware(p *timeout.Policy, opts ...Option) mcp.Middleware {
	s := newSettings(opts)
	if p != nil {
		s.calls.Policy = p
	}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				return s.supervise(ctx, method, call, next)
			}
			if question, ok := req.GetParams().(*mcp.ElicitParams); ok && method == methodElicit {
				return elicit(ctx, question.Message, s.await, func(ctx context.Context) (mcp.Result, error) {
					return next(ctx, method, req)
				})
			}
			res, err := next(ctx, method, req)
			if s.declare && err == nil {
				res = s.declared(res)
			}
			return res, err
		}
	}
}

func (s *settings) supervise(ctx context.Context, method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	call := newCall(ctx, req)
	ctx, release := untilGone(ctx, req.Session)
	defer release()
	res, err := toolcall.Do(ctx, &s.calls, call, func(ctx context.Context) (mcp.Result, error) {
		growStack()
		res, err := next(ctx, method, req)
		if r, ok := res.(*mcp.CallToolResult); ok && r != nil && err == nil {
			if err = r.GetError(); err == nil && r.IsError {
				err = toolcall.ErrResult
			}
		}
		return res, err
	})
	if err == nil || err == toolcall.ErrResult {
		return res, nil
	}
	return answer(req, res, err)
}

// newCall is what is the same for Middleware and for Handler. The context is the SDK's own, which
// it cancels as soon as it has written the answer.
func newCall(ctx context.Context, req *mcp.CallToolRequest) toolcall.Call {
	return toolcall.Call{
		Tool: req.Params.Name, Session: req.Session, Token: exactToken(req.Params),
		Meta: req.Params.Meta, Arguments: req.Params.Arguments,
		Answered: func(leave func()) { context.AfterFunc(ctx, leave) },
		Send: func(ctx context.Context, n progress.Notification) error {
			return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: n.ProgressToken, Progress: n.Progress, Total: n.Total, Message: n.Message,
			})
		},
	}
}
