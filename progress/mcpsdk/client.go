package mcpsdk

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ClientLimits bound one request of a client.
type ClientLimits = request.Limits

// Limit sets a limit for every request that c sends, by adding a sending and a receiving middleware to
// it. Call it once for a client, before [Connect] or c.Connect.
//
//	mcpsdk.Limit(client, mcpsdk.ClientLimits{Timeout: request.DefaultTimeout}, request.DefaultLimits())
//
// A request has the first of these limits that exist: those of [WithLimits]; those under its method
// in perMethod; those under the longest matching pattern in perMethod, which is a prefix with a
// star such as "resources/*"; with [UseDeclared], those that the server has declared for the tool
// or the method; the defaults. Notifications have no limits, and neither has the stream of
// subscriptions/listen.
//
// A request that times out is cancelled at the server, in the SDK's way for each transport; initialize
// is not, as the protocol demands. The reason of its notifications/cancelled names the limit: "timeout
// of 60 s without progress". Over Streamable HTTP with protocol 2026-07-28 the end of the stream is
// the cancellation, which has no reason. There is no reason either if a sending middleware that was
// added before Limit passes a context on that is not derived from the one it got. A stateless server
// of the SDK over HTTP stops its work only with protocol 2026-07-28, and only if its
// PropagateRequestCancellation is set.
//
// In the error, errors.As and errors.Is find a *jsonrpc.Error with [request.CodeTimeout], a
// [*timeout.Error] with the limit, the elapsed time and the method as its Tool, and
// context.DeadlineExceeded. A deadline of the caller's context is a timeout too. If the caller cancels
// the context, the error is context.Canceled and has the context's cause in its tree. A late answer
// and late progress are ignored. If the SDK is stuck in a call, for example because a server does not
// read its input, the call is given up after another 250 ms.
//
// The caller's params are not changed, except by the SDK itself; a progress token that they have, and
// the ProgressNotificationHandler, work as they do without Limit. Handlers of notifications are
// called one after the other, in the order of arrival, but not on the SDK's goroutine, so that a slow
// one delays no limit: some may still be called when the session has been closed. A panic of one is
// reported to the logger and the hooks of [WithRequestOptions], and the next one is called. A request without
// params, such as ListTools with nil, is sent with empty params if it needs a token.
//
// Handlers that the client calls in answer to an input-required result get the context of the request,
// whose limits keep running. A handler that asks a person can hold the Timeout with heartbeat.Hold.
// Before protocol 2026-07-28 the server asks, without saying on behalf of which request: the handler's
// context is that of the connection, and Hold has no effect in it. If ResetOnProgress is set, the
// progress that the server sends while it waits renews the Timeout.
func Limit(c *mcp.Client, defaults ClientLimits, perMethod map[string]ClientLimits, opts ...LimitOption) {
	l := new(limiter)
	for _, o := range opts {
		if o != nil {
			o.applyLimit(l)
		}
	}
	l.requests = request.New(defaults, perMethod, l.options...)
	l.handlers.Panicked = l.requests.Panicked
	c.AddSendingMiddleware(l.send)
	c.AddReceivingMiddleware(l.receive)
}

// A LimitOption configures [Limit].
type LimitOption interface{ applyLimit(*limiter) }

type limitFunc func(*limiter)

func (f limitFunc) applyLimit(l *limiter) { f(l) }

// WithRequestOptions sets options of the executions that the requests under a limit are:
// [timeout.WithLogger], [timeout.WithHooks], [timeout.WithClock], or [timeout.WithObserveOnly] to
// find limits that fit before any request is stopped. The name of an execution is the method; the log
// also names the tool that is called, and the server. The
// limits are those of [Limit], which panics with a [*timeout.ConfigError] if a [timeout.Config] is
// among the options. If WithRequestOptions is given more than once, all options apply.
func WithRequestOptions(opts ...timeout.Option) LimitOption {
	return limitFunc(func(l *limiter) { l.options = append(l.options, opts...) })
}

// WithLimits returns a context whose next request has the limits l, in place of those that
// [Limit] has for it. It has no effect on a client without Limit.
func WithLimits(ctx context.Context, l ClientLimits) context.Context {
	return request.WithLimits(ctx, l)
}

type limiter struct {
	requests *request.Limiter
	options  []timeout.Option
	declared *declarations // nil without UseDeclared
	handlers adapter.Queue // not bounded, as the SDK's own, whose place it takes: the answers come through the same pipe
}

func (l *limiter) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		a := attemptOf(ctx)
		if a != nil {
			// The phase has a limit of its own now, and a slow server/discover must not
			// end the attempt: initialize comes after it.
			if a.limits.Timeout > 0 {
				defer heartbeat.Hold(a.ctx)()
			}
			ctx = request.WithLimits(ctx, a.limits)
		}
		call := request.Call{
			Session: req.GetSession(), Method: method,
			Token: progressToken(req), NoCancel: method == "initialize",
			Declared: l.declared.limits(method, req),
		}
		call.Tool, call.Server = label(req, a)
		res, err := request.Do(ctx, l.requests, call, func(ctx context.Context, token string) (mcp.Result, error) {
			req := req
			if token != "" {
				req = withProgressToken(method, req, token)
			}
			res, err := next(reasoned{ctx, token != ""}, method, req)
			return res, plain(err)
		})
		if err == nil {
			l.declared.hear(req.GetSession(), res)
		}
		return res, asRPC(err)
	}
}

func (l *limiter) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if !strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		if p, ok := req.GetParams().(*mcp.ProgressNotificationParams); ok && p != nil {
			own, wanted := l.requests.Progress(req.GetSession(), p.ProgressToken)
			if !wanted {
				return nil, nil
			}
			p.ProgressToken = own // they have been decoded for this call alone
		}
		// The SDK passes on the next notification when this returns, and cancels ctx.
		l.handlers.Add(req.GetSession(), func() { _, _ = next(context.WithoutCancel(ctx), method, req) })
		return nil, nil
	}
}
