package mcpsdk

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Limit adds middleware to c that sets a limit for every request of c, and that has the other features of o. Call Limit
// once for a client, before [Connect] or c.Connect. Middleware that was added before Limit sees each request that is
// sent, including each try and each poll of a task.
//
//	mcpsdk.Limit(client, nil) // 30 s without progress and 30 min in total for tools/call, 60 s for most of the rest
//
// A request has the first of these limits that exist: those of [request.WithLimits]; those of its method in PerMethod;
// those that the server has declared; Limits. Notifications and the stream of subscriptions/listen have no limits.
//
// Each tools/call says how long it waits, see [policy.Budget], and a server with [Install] answers before that.
//
// A request that times out is cancelled at the server, except initialize. In the error, errors.As and errors.Is find
// a *jsonrpc.Error with [request.CodeTimeout], a [*timeout.Error] with the limit, the elapsed time and the method as
// its Tool, and context.DeadlineExceeded. A deadline of the caller's context is a timeout too. If the caller cancels
// the context, errors.Is finds context.Canceled and the context's cause. A late answer and late progress are
// ignored. If the SDK does not return when the request is cancelled, the call returns 250 ms later.
//
// The caller's params are not changed, except by the SDK; its progress token and handlers work as they do without
// Limit. Handlers of notifications are called one after the other, but not on the SDK's goroutine, so that a slow
// handler delays no renewal of a limit. A panic of a handler is reported to Logger and Hooks. The package comment
// describes the cancellation that the server receives, and handlers that ask a person.
//
// Limit panics with a [*timeout.ConfigError] if c is nil. The clients of one program may share o.
func Limit(c *mcp.Client, o *request.Options) {
	if c == nil {
		panic(&timeout.ConfigError{Key: "client", Value: "nil", Accepted: "a client"})
	}
	if o == nil {
		o = new(request.Options)
	}
	l := &limiter{requests: request.New(o), ceiling: o.Declared}
	l.handle = l.requests.Handlers(0, 0) // without a bound, like the SDK's queue: answers arrive on the same connection
	c.AddSendingMiddleware(l.send)
	c.AddReceivingMiddleware(l.receive)
	if o.Retry != nil {
		retry(c, o.Backoff, o.Retry)
	}
	if o.FollowTasks {
		followTasks(c)
	}
}

type limiter struct {
	requests *request.Limiter
	ceiling  *request.Limits                  // of declared limits; nil if they do not count
	declared perSession[request.Declarations] // what each server has declared
	handle   func(session any, handle func()) // runs a handler of notifications; see Limiter.Handlers
}

// declaredLimits returns the limits that the server has declared for a request, cut to the ceiling, or nil if there are
// none.
func (l *limiter) declaredLimits(method string, req mcp.Request) *request.Limits {
	if l.ceiling == nil {
		return nil
	}
	var tool string
	if p, ok := req.GetParams().(*mcp.CallToolParams); ok && p != nil {
		tool = p.Name
	}
	return l.declared.of(req.GetSession()).Limits(method, tool, *l.ceiling)
}

// hear records the limits that an answer of a server declares.
func (l *limiter) hear(session mcp.Session, res mcp.Result) {
	known := l.declared.of(session)
	if l.ceiling == nil || known == nil {
		return
	}
	var capabilities *mcp.ServerCapabilities
	switch r := res.(type) {
	case *mcp.ListToolsResult:
		for _, t := range r.Tools {
			if t != nil && t.Name != "" { // "" is the key of the limits of the server
				known.Tool(t.Name, t.Meta)
			}
		}
	case *mcp.InitializeResult:
		capabilities = r.Capabilities
	case *mcp.DiscoverResult:
		capabilities = r.Capabilities
	}
	if capabilities != nil {
		known.Tool("", capabilities.Extensions)
	}
}

func (l *limiter) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		a := attemptOf(ctx)
		if a != nil {
			// From here on each request of the handshake has its own limit. The idle limit of the attempt is
			// held, because a slow server/discover must not end the attempt: initialize follows.
			if a.limits.Timeout > 0 {
				defer heartbeat.Hold(a.ctx)()
			}
			ctx = request.WithLimits(ctx, a.limits)
		}
		call := request.Call{
			Session: req.GetSession(), Method: method,
			Token: progressToken(req), NoCancel: method == "initialize",
			Declared: l.declaredLimits(method, req),
		}
		call.Tool, call.Server = label(req, a)
		res, err := request.Do(ctx, l.requests, call, func(ctx context.Context, token string) (mcp.Result, error) {
			res, err := next(reasoned{ctx, token != ""}, method, stamp(ctx, method, req, token))
			return res, plain(err)
		})
		if err == nil {
			l.hear(req.GetSession(), res)
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
			p.ProgressToken = own // no other code uses these params
		}
		// When this returns, the SDK cancels ctx and handles the next notification.
		l.handle(req.GetSession(), func() { _, _ = next(context.WithoutCancel(ctx), method, req) })
		return nil, nil
	}
}
