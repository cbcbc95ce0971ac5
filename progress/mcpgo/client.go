package mcpgo

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// handlerWait is how long the reader of a transport waits for the handler of a notification. Most handlers return
// earlier; then, as with mcp-go alone, the handlers of all notifications that precede an answer have returned before
// the call returns.
const handlerWait = 20 * time.Millisecond

// maxWaiting is how many notifications may wait for a slow handler. When so many wait, the reader waits for the next
// handler, as it does with mcp-go alone.
const maxWaiting = 1000

// Limit returns a transport that sends requests over t, each with a limit, and that has the other features of o.
// mcp-go's clients have no middleware, but are created with a transport:
//
//	c := client.NewClient(mcpgo.Limit(t, nil)) // 30 s without progress and 30 min in total for tools/call, 60 s for most of the rest
//
// Use the result instead of t, for one client, before Start. A request has the first of these limits that exist: those
// of [request.WithLimits]; those of its method in PerMethod; those that the server has declared; Limits. Notifications
// and the stream of subscriptions/listen have no limits. A list of several pages is several requests, and so is a call
// for which the server asks for more input.
//
// Each tools/call says how long it waits, see [policy.Budget], and a server with [Install] answers before that.
//
// A request that times out is cancelled at the server, except those of the handshake. In the error, errors.As finds
// a [*request.Error], with what the JSON-RPC error has in the TypeScript SDK, and a [*timeout.Error] with the limit,
// the elapsed time and the method as its Tool; errors.Is finds mcp.ErrRequestInterrupted and
// context.DeadlineExceeded. A deadline of the caller's context is a timeout too. If the caller cancels the context,
// errors.Is finds context.Canceled and the context's cause. A late answer and late progress are ignored. If the
// transport does not return when the request is cancelled, the call returns 250 ms later.
//
// The caller's params are not changed, and its progress token and the handlers of OnNotification work as they do
// without Limit, except that a handler that takes longer than 20 ms goes on concurrently with the client. The package
// comment says more about handlers, and about the cancellation that the server receives.
//
// The result implements the same optional methods as t, but has another type: client.GetEndpoint accepts only t. Limit
// panics with a [*timeout.ConfigError] if t is nil.
func Limit(t transport.Interface, o *request.Options) transport.Interface {
	if t == nil {
		panic(&timeout.ConfigError{Key: "transport", Value: "nil", Accepted: "a transport"})
	}
	if o == nil {
		o = new(request.Options)
	}
	if o.FollowTasks {
		t = followTasks(t)
	}
	l := &limiter{passing: passing{t}, requests: request.New(o), ceiling: o.Declared}
	l.handle = l.requests.Handlers(handlerWait, maxWaiting)
	_, l.bidirectional = t.(transport.BidirectionalInterface)
	_, l.http = t.(transport.HTTPConnection)
	limited := complete(l, t, l.setVersion)
	if o.Retry == nil {
		return limited
	}
	return complete(&retrier{passing: passing{limited}, backoff: o.Backoff, match: request.Repeatable(o.Retry...)}, limited, nil)
}

// A limiter is a transport that puts limits on requests, and renews them when progress for a request arrives.
type limiter struct {
	passing
	requests *request.Limiter
	ceiling  *request.Limits                  // of declared limits; nil if they do not count
	declared request.Declarations             // what the server has declared
	reasons  sync.Map                         // reasons for the cancellations that mcp-go will send, by request id
	handle   func(session any, handle func()) // runs a handler of notifications; see Limiter.Handlers

	// bidirectional and http report whether the transport implements transport.BidirectionalInterface and
	// transport.HTTPConnection.
	bidirectional, http bool
	modern              atomic.Bool  // the protocol is 2026-07-28 or later; set by setVersion
	server              atomic.Value // string: the name of the server; nil before the handshake
}

func (l *limiter) setVersion(version string) { l.modern.Store(mcp.IsModernProtocol(version)) }

func (l *limiter) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	call := request.Call{Method: r.Method, Token: ownToken(r.Params), Declared: l.declaredLimits(r)}
	if r.Method == string(mcp.MethodToolsCall) {
		call.Tool = toolOf(r.Params)
	}
	call.Server, _ = l.server.Load().(string)
	resp, err := request.Do(ctx, l.requests, call, func(ctx context.Context, token string) (*transport.JSONRPCResponse, error) {
		r := r
		r.Params = stamp(ctx, r.Method, r.Params, token)
		return l.Interface.SendRequest(ctx, r)
	})
	if stop, ok := err.(*request.Error); ok {
		l.cancel(ctx, r, stop)
	} else if said, ok := hear(r.Method, resp, err); ok {
		l.hear(r.Method, said)
	}
	return resp, asTimeout(err)
}

// declaredLimits returns the limits that the server has declared for a request, cut to the ceiling, or nil if there are
// none.
func (l *limiter) declaredLimits(r transport.JSONRPCRequest) *request.Limits {
	if l.ceiling == nil {
		return nil
	}
	tool := ""
	if r.Method == string(mcp.MethodToolsCall) {
		if tool = toolOf(r.Params); tool == "" {
			return nil
		}
	}
	return l.declared.Limits(r.Method, tool, *l.ceiling)
}

// hear records what an answer of the server says of its name, and of its limits.
func (l *limiter) hear(method string, said heard) {
	if name := cmp.Or(said.ServerInfo.Name, said.Meta.ServerInfo.Name); name != "" {
		l.server.Store(name)
	}
	if l.ceiling == nil {
		return
	}
	if method != methodListing {
		l.declared.Tool("", said.Capabilities.Extensions)
	}
	for _, t := range said.Tools {
		if t.Name != "" { // "" is the key of the limits of the server
			l.declared.Tool(t.Name, t.Meta)
		}
	}
}

// cancel sends the server a notifications/cancelled for a request that ended with stop, on a goroutine of its own. It
// sends none for the handshake and for tasks, and if the transport or mcp-go's client cancels the request itself.
func (l *limiter) cancel(ctx context.Context, r transport.JSONRPCRequest, stop *request.Error) {
	switch {
	case r.Method == string(mcp.MethodInitialize), r.Method == string(mcp.MethodServerDiscover), isTask(r.Params):
		return
	case l.http && l.bidirectional:
		// Streamable HTTP. Request ids are not unique among clients: without a session, the server
		// could cancel a request of another client.
		if l.modern.Load() || l.GetSessionId() == "" {
			return
		}
	case !l.http && ctx.Err() != nil:
		// mcp-go's client sends the cancellation, and SendNotification replaces its reason.
		id := r.ID.String()
		l.reasons.Store(id, stop.Reason())
		time.AfterFunc(cancelWait, func() { l.reasons.Delete(id) })
		return
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: string(mcp.MethodNotificationCancelled),
		Params: mcp.NotificationParams{AdditionalFields: map[string]any{"requestId": r.ID, "reason": stop.Reason()}},
	}}
	ctx = context.WithoutCancel(ctx)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, cancelWait)
		defer cancel()
		_ = l.SendNotification(ctx, n)
	}()
}

// SendNotification sends a notification. In a cancellation from mcp-go's client, it replaces the reason by the recorded
// one.
func (l *limiter) SendNotification(ctx context.Context, n mcp.JSONRPCNotification) error {
	if n.Method == string(mcp.MethodNotificationCancelled) {
		if id, ok := n.Params.AdditionalFields["requestId"].(mcp.RequestId); ok {
			if reason, ok := l.reasons.LoadAndDelete(id.String()); ok {
				n.Params.AdditionalFields = maps.Clone(n.Params.AdditionalFields)
				n.Params.AdditionalFields["reason"] = reason
			}
		}
	}
	return l.Interface.SendNotification(ctx, n)
}

func (l *limiter) SetNotificationHandler(handler func(mcp.JSONRPCNotification)) {
	if handler == nil {
		l.Interface.SetNotificationHandler(nil)
		return
	}
	l.Interface.SetNotificationHandler(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			own, wanted := l.requests.Progress(nil, n.Params.AdditionalFields["progressToken"])
			if !wanted {
				return
			}
			n.Params.AdditionalFields = maps.Clone(n.Params.AdditionalFields) // in one process, the server shares the map
			if own != nil {
				n.Params.AdditionalFields["progressToken"] = own
			}
		}
		l.handle(nil, func() { handler(n) })
	})
}
