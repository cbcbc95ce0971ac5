package mcpsdk

import (
	"context"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/request"
)

// ClientLimits bound one request of a client (SPEC 8.1). The zero ClientLimits are none:
// the caller's context alone bounds the request.
type ClientLimits struct {
	// Timeout is how long to wait for the answer or, with ResetOnProgress, from one
	// progress notification for the request to the next. 0 or less is no such limit.
	Timeout time.Duration
	// MaxTotal caps the elapsed time. It fires on time whether or not progress arrives.
	// 0 or less is no cap.
	MaxTotal time.Duration
	// ResetOnProgress makes each progress notification for the request restart Timeout.
	// The request is sent with a progress token for it.
	ResetOnProgress bool
}

// DefaultTimeout is the Timeout that SPEC 8.1 gives a request for which nobody has
// thought of another: 60 s.
const DefaultTimeout = request.DefaultTimeout

// ReferenceLimits gives limits per method to pass to [Limit], in a map that is the
// caller's to change (SPEC 8.4): for tools/call 30 s from one sign of progress to the
// next, and 30 min in all; for list and get calls 10 s; for initialize and
// server/discover 5 s.
func ReferenceLimits() map[string]ClientLimits {
	out := make(map[string]ClientLimits)
	for method, l := range request.Reference() {
		out[method] = ClientLimits(l)
	}
	return out
}

// Limit gives every request that c sends a limit, by adding a sending and a receiving
// middleware to it. Call it once for a client, before [Connect] or c.Connect.
//
// The limits of a request are those of [WithLimits]; or else those under its method in
// perMethod; or else those under the longest pattern there that matches, a prefix with a
// star such as "resources/*"; or else the defaults. Notifications have no limits, and
// neither has the stream of subscriptions/listen (SPEC 9.1).
//
// A request that times out is cancelled at the server, as the SDK does on each
// transport; initialize is not, as the protocol demands. A stateless server of the SDK
// over HTTP stops what it does only with the protocol 2026-07-28, and if its
// PropagateRequestCancellation is set. The error is a [*jsonrpc.Error]
// with [CodeRequestTimeout], a [*timeout.Error] with the limit, the elapsed time and the
// method as its Tool, and context.DeadlineExceeded, for errors.As and errors.Is. A
// deadline of the caller's context is a timeout as well. Its cancellation is
// context.Canceled, with the context's cause in the tree. A late answer and late
// progress are ignored. A call in which the SDK is stuck, as when a server does not read
// its input, is given up after another 250 ms.
//
// The caller's params are not changed, but by the SDK itself, and its own progress token and
// ProgressNotificationHandler work as they do without Limit. Handlers of notifications
// are called one after the other, in the order of arrival, but on another goroutine than
// the SDK's, so that a slow one delays no limit: some may still be called when the
// session has been closed. A request without params, such as ListTools with nil, is sent
// with empty ones where it needs a token.
//
// Handlers that the client calls in answer to an input-required result get the context
// of the request, whose limits run on. One that asks a person can hold the Timeout
// meanwhile with heartbeat.Hold.
func Limit(c *mcp.Client, defaults ClientLimits, perMethod map[string]ClientLimits) {
	per := make(map[string]request.Limits)
	for method, l := range perMethod {
		per[method] = request.Limits(l)
	}
	l := &limiter{requests: request.New(request.Limits(defaults), per)}
	c.AddSendingMiddleware(l.send)
	c.AddReceivingMiddleware(l.receive)
}

// WithLimits gives the limits of the next request made with the context, in place of
// those that [Limit] was given. It has no effect on a client without Limit.
func WithLimits(ctx context.Context, l ClientLimits) context.Context {
	return request.WithLimits(ctx, request.Limits(l))
}

type limiter struct {
	requests *request.Client
	handlers queue
}

func (l *limiter) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if a := attemptOf(ctx); a != nil {
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
		}
		res, err := request.Do(ctx, l.requests, call, func(ctx context.Context, token string) (mcp.Result, error) {
			if token == "" {
				return next(ctx, method, req)
			}
			return next(ctx, method, withProgressToken(method, req, token))
		})
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
		l.handlers.add(req.GetSession(), func() { _, _ = next(context.WithoutCancel(ctx), method, req) })
		return nil, nil
	}
}
