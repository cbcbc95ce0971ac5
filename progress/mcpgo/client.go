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

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ClientLimits bound one request of a client.
type ClientLimits = request.Limits

// Limit sets a limit for every request that goes through t. mcp-go's clients have no middleware, but
// they are made with a transport, which Limit wraps:
//
//	c := client.NewClient(mcpgo.Limit(t, mcpgo.ClientLimits{Timeout: request.DefaultTimeout}, request.DefaultLimits()))
//
// Use the result instead of t, for one client, before Start.
//
// A request has the first of these limits that exist: those of [WithLimits]; those under its method
// in perMethod; those under the longest matching pattern in perMethod, which is a prefix with a
// star such as "resources/*"; with [UseDeclared], those that the server has declared for the tool
// or the method; the defaults. Notifications have no limits, and neither has the stream of
// subscriptions/listen. A call for which a server asks for more input, and the listing of several
// pages, are several requests.
//
// In the error of a request that times out, errors.As finds a [*RequestTimeout], whose Details have the
// code [request.CodeTimeout], and a [*timeout.Error], with the limit, the elapsed time,
// and the method as its Tool; errors.Is finds mcp.ErrRequestInterrupted and
// context.DeadlineExceeded. A deadline of the caller's context is a timeout too. If the caller cancels
// the context, the error is context.Canceled and has the context's cause in its tree. A late answer
// and late progress are ignored. If the transport is stuck, for example because a server does not read
// its input, the request is given up after another 250 ms.
//
// A request that times out is cancelled at the server. Over Streamable HTTP its stream is closed.
// Over the other transports, and over Streamable HTTP if the server keeps a session, a
// notifications/cancelled is sent, whose reason names the limit: "timeout of 60 s without progress".
// If the caller cancels a request that has limits, Limit does the same where mcp-go does not, which
// is over SSE and Streamable HTTP. The requests of the handshake are never cancelled, and neither is
// one for a task.
//
// The caller's params are not changed, and its own progress token and the handlers of OnNotification
// work as they do without Limit. In mcp-go a slow handler delays everything that comes after it,
// including the answer and every renewal of a limit. With Limit, a handler that takes longer than 20
// ms goes on concurrently with the client, so it may still run when a call has returned. Handlers are
// called one after the other, in the order of arrival. When 1000 notifications wait, the reader of the
// transport waits too, and with it every answer.
// A panic of one is reported to the logger and the hooks of [WithRequestOptions], and the next one is
// called.
//
// The result implements the interfaces that t implements beyond transport.Interface: for requests of
// the server, the protocol version, the output of a command, and a lost connection. Its type is not
// that of t, so client.GetEndpoint does not accept it; pass t. transport.SSE itself has a limit of 60
// s that no progress renews; see transport.WithResponseTimeout.
func Limit(t transport.Interface, defaults ClientLimits, perMethod map[string]ClientLimits, opts ...LimitOption) transport.Interface {
	l := &limiter{passing: passing{t}, handlers: adapter.Queue{Wait: handlerWait, Max: maxWaiting}}
	for _, o := range opts {
		if o != nil {
			o.applyLimit(l)
		}
	}
	l.requests = request.New(defaults, perMethod, l.options...)
	l.handlers.Panicked = l.requests.Panicked
	_, l.bidirectional = t.(transport.BidirectionalInterface)
	_, l.http = t.(transport.HTTPConnection)
	return complete(l, t, l.setVersion)
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
// [Limit] has for it. It has no effect on a transport without Limit.
func WithLimits(ctx context.Context, l ClientLimits) context.Context {
	return request.WithLimits(ctx, l)
}

// handlerWait is how long the reader of a transport waits for a handler. Most are done long
// before, and then all is as mcp-go has it: the handlers of what came before an answer have
// returned when the call does.
const handlerWait = 20 * time.Millisecond

// maxWaiting is how many notifications wait for a slow handler before the reader does, as
// it would without us.
const maxWaiting = 1000

// A limiter is a transport that looks at the requests and at the progress that comes for
// them.
type limiter struct {
	passing
	requests *request.Limiter
	options  []timeout.Option
	declared *declarations // nil without UseDeclared
	reasons  sync.Map      // of the requests that mcp-go cancels, by id
	handlers adapter.Queue

	bidirectional, http bool // the transport is
	modern              atomic.Bool
	server              atomic.Value // string: what it calls itself
}

// hear notes what the server calls itself.
func (l *limiter) hear(method string, resp *transport.JSONRPCResponse) {
	if resp == nil || method != string(mcp.MethodInitialize) && method != string(mcp.MethodServerDiscover) {
		return
	}
	type info struct {
		Name string `json:"name"`
	}
	var res struct {
		ServerInfo info `json:"serverInfo"`
		Meta       struct {
			ServerInfo info `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if adapter.Unmarshal(resp.Result, &res) != nil {
		return
	}
	if name := cmp.Or(res.ServerInfo.Name, res.Meta.ServerInfo.Name); name != "" {
		l.server.Store(name)
	}
}

func (l *limiter) setVersion(version string) { l.modern.Store(mcp.IsModernProtocol(version)) }

func (l *limiter) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	call := request.Call{Method: r.Method, Token: ownToken(r.Params), Declared: l.declared.limits(r)}
	if r.Method == string(mcp.MethodToolsCall) {
		call.Tool = toolOf(r.Params)
	}
	call.Server, _ = l.server.Load().(string)
	resp, err := request.Do(ctx, l.requests, call, func(ctx context.Context, token string) (*transport.JSONRPCResponse, error) {
		r := r
		if token != "" {
			r.Params = withToken(r.Params, token)
		}
		return l.Interface.SendRequest(ctx, r)
	})
	if stop, ok := err.(*request.Error); ok {
		l.cancel(ctx, r, stop)
	} else if err == nil {
		l.declared.hear(r.Method, resp)
		l.hear(r.Method, resp)
	}
	return resp, asTimeout(err)
}

// cancelWait bounds the sending of a cancellation that a server does not take.
const cancelWait = 5 * time.Second

// cancel tells the server that nobody waits for the answer any more, where that takes a
// message and the client does not send it.
func (l *limiter) cancel(ctx context.Context, r transport.JSONRPCRequest, stop *request.Error) {
	switch {
	case r.Method == string(mcp.MethodInitialize), r.Method == string(mcp.MethodServerDiscover), isTask(r.Params):
		return
	case l.http && l.bidirectional:
		// Streamable HTTP. Without a session the server could take the id, which is not
		// unique among clients, for another's.
		if l.modern.Load() || l.GetSessionId() == "" {
			return
		}
	case !l.http && ctx.Err() != nil:
		// The client does, in words of its own.
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

// SendNotification puts the reason into a cancellation of the client's.
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
			n.Params.AdditionalFields = maps.Clone(n.Params.AdditionalFields) // in-process it is the server's
			if own != nil {
				n.Params.AdditionalFields["progressToken"] = own
			}
		}
		l.handlers.Add(nil, func() { handler(n) })
	})
}
