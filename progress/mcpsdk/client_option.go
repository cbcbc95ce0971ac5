package mcpsdk

import (
	"context"
	"log/slog"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ClientLimits bound one request of a client.
type ClientLimits = request.Limits

// ClientOptions are the settings of [Limit]. The zero ClientOptions, and nil, mean the defaults: the limits of
// [request.DefaultTimeout] and [request.DefaultLimits], and nothing else.
type ClientOptions struct {
	// Limits are those of a request without better ones. nil means a Timeout of [request.DefaultTimeout]; the zero
	// ClientLimits mean none.
	Limits *ClientLimits
	// PerMethod are the limits of the requests of a method, or of those of a prefix with a star such as "resources/*", of
	// which the longest counts. nil means [request.DefaultLimits]; an empty map means none.
	PerMethod map[string]ClientLimits
	// Declared, if not nil, has Limit use the limits that the server has declared for a tool or a method, see Declare
	// of [Options]. They take precedence over Limits, but not over PerMethod and [WithLimits]: delete the entries of
	// the methods for which they are to count. A server may declare anything, so this is the ceiling of what it
	// declares, see [adapter.Declarations.Limits]; zero is no ceiling. The declarations are those of the handshake, and
	// of each list of tools.
	Declared *ClientLimits
	// Retry are the methods whose requests are sent again if they time out, or cannot be delivered, or prefixes with a
	// star: those that only read, such as "tools/list" and "resources/*". Requests of the handshake and those that open
	// a stream are never sent again. A tools/call is, if "tools/call" itself is among them, and the newest list of
	// tools that the client has requested has a ReadOnlyHint or an IdempotentHint for the tool. All attempts of that
	// have the same [request.IdempotencyKey], see Idempotency of [Options]. nil means that nothing is sent again.
	Retry []string
	// Backoff is when and how often Retry tries again.
	Backoff request.Backoff
	// FollowTasks makes a client support tasks: if a server answers a tools/call with a task, the call asks for the task
	// until that has ended, and returns its result, as if it had just taken longer. See the package comment.
	FollowTasks bool
	// Logger receives the records of each request's execution. The name of that is the method; the record also names the
	// tool and the server. nil means no logging.
	Logger *slog.Logger
	// Hooks are called for each request's execution.
	Hooks timeout.Hooks
	// Clock is that of the limits, from [timeout.WithClock]. nil means the system's.
	Clock timeout.Setting
	// ObserveOnly reports what the limits would have stopped, and stops nothing: to find limits that fit.
	ObserveOnly bool
}

// limiter returns the limits of the requests.
func (o *ClientOptions) limiter() *request.Limiter {
	defaults := ClientLimits{Timeout: request.DefaultTimeout}
	perMethod := o.PerMethod
	if o.Limits != nil {
		defaults = *o.Limits
	}
	if perMethod == nil {
		perMethod = request.DefaultLimits()
	}
	opts := []timeout.Setting{timeout.WithHooks(o.Hooks)}
	if o.Logger != nil {
		opts = append(opts, timeout.WithLogger(o.Logger))
	}
	if o.Clock != nil {
		opts = append(opts, o.Clock)
	}
	if o.ObserveOnly {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return request.New(defaults, perMethod, opts...)
}

// declarations are those that Limit uses, nil where it uses none.
func (o *ClientOptions) declarations() *declarations {
	if o.Declared == nil {
		return nil
	}
	return &declarations{ceiling: *o.Declared}
}

// WithLimits returns a context whose next request has the limits l, in place of those that [Limit] has for it. It has no
// effect on a client without Limit.
func WithLimits(ctx context.Context, l ClientLimits) context.Context {
	return request.WithLimits(ctx, l)
}
