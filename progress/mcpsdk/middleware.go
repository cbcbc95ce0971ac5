package mcpsdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Install runs every tool call of s as an execution under the limits of o. In the tool's context, package heartbeat and
// [progress.Report] renew the idle limit, and reach the client as notifications if its request has a progress token. A
// server needs nothing else:
//
//	mcpsdk.Install(server, &mcpsdk.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Minute}})
//
// If a tool returns in time, the client gets its result. If a tool was stopped, the client gets the result that
// [SetResult] makes of the error and of what the tool returned; a typed handler must return a nil error with its
// result, or the SDK drops the result. If a tool panics, or a mcp.ToolHandler returns an error, the client gets a
// result whose IsError is true, with the text of the error. A *jsonrpc.Error is returned unchanged.
//
// While a tool waits for a person in ServerSession.Elicit, the idle check is held, as under [progress.Await]. If the
// tool has called Await itself, or asks within an execution that it has begun, the limits of that Await or execution
// apply. Only messages about tools, and those that an option of o concerns, are changed.
//
// Middleware that was added to s before runs under the limits; middleware that is added later does not, and with Tasks
// must not assume that the results of tools/call, tools/list and initialize have the SDK's types. Install panics with a
// [*timeout.ConfigError] if s is nil, if o contradicts itself, or if the version of the SDK is not supported.
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
			if s.offered {
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
			return adapter.Await(ctx, req.GetSession(), method, "", "", *s.Requests, func(ctx context.Context) (mcp.Result, error) {
				return out(ctx, method, req)
			})
		}
		res, err := out(ctx, method, req)
		if err == nil {
			res = s.amended(ctx, req, res)
		}
		return res, err
	}
}

// callOnce answers a tools/call. With Idempotency, a call that repeats an earlier one gets the same result, and the
// tool does not run again.
func (s *settings) callOnce(ctx context.Context, method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	p := req.Params
	content := []any{p.Name, p.Arguments, p.InputResponses, p.RequestState}
	res, err := adapter.Repeat(ctx, s.Server, p.Meta, func() adapter.Caller { return s.callerOf(ctx, req) }, content, func() (mcp.Result, error) {
		return s.call(ctx, method, req, next)
	})
	if !s.Idempotency {
		return res, err
	}
	// The SDK modifies the results that it sends, so each call needs a copy.
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
