package request

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of a client: those of Limit of an adapter, and of [Options.Limiter]. The zero Options, and nil,
// mean the defaults: the limits of [DefaultTimeout] and [DefaultLimits], and nothing else.
type Options struct {
	// Limits are those of a request without better ones. nil means a Timeout of [DefaultTimeout]; the zero Limits mean
	// none.
	Limits *Limits
	// PerMethod are the limits of the requests of a method, or of those of a prefix with a star such as "resources/*", of
	// which the longest counts. nil means [DefaultLimits]; an empty map means none.
	PerMethod map[string]Limits
	// Declared, if not nil, has the client use the limits that the server has declared for a tool or a method. They take
	// precedence over Limits, but not over PerMethod and [WithLimits]: delete the entries of the methods for which they
	// are to count. A server may declare anything, so this is the ceiling of what it declares, see
	// [Declarations.Limits]; zero is no ceiling. The declarations are those of the handshake, and of each list of tools.
	Declared *Limits
	// Retry are the methods whose requests are sent again if they time out, or cannot be delivered, or prefixes with a
	// star: those that only read, such as "tools/list" and "resources/*". Requests of the handshake and those that open
	// a stream are never sent again. A tools/call is, if "tools/call" itself is among them, and the newest list of
	// tools that the client has requested has a ReadOnlyHint or an IdempotentHint for the tool. All attempts of that
	// have the same [IdempotencyKey]. nil means that nothing is sent again.
	Retry []string
	// Backoff is when and how often Retry tries again.
	Backoff Backoff
	// FollowTasks makes a client support tasks: if a server answers a tools/call with a task, the call asks for the task
	// until that has ended, and returns its result, as if it had just taken longer. See the page of the adapter.
	FollowTasks bool
	// Logger receives the records of each request's execution. The name of that is the method; the record also names the
	// tool and the server. nil means no logging.
	Logger *slog.Logger
	// Hooks are called for each request's execution.
	Hooks timeout.Hooks
	// ObserveOnly reports what the limits would have stopped, and stops nothing: to find limits that fit.
	ObserveOnly bool
}

// Limiter returns a [Limiter] with the limits, the logger and the hooks of o.
func (o *Options) Limiter() *Limiter {
	if o == nil {
		o = new(Options)
	}
	defaults, perMethod := Limits{Timeout: DefaultTimeout}, o.PerMethod
	if o.Limits != nil {
		defaults = *o.Limits
	}
	if perMethod == nil {
		perMethod = DefaultLimits()
	}
	opts := []timeout.Setting{timeout.WithHooks(o.Hooks)}
	if o.Logger != nil {
		opts = append(opts, timeout.WithLogger(o.Logger))
	}
	if o.ObserveOnly {
		opts = append(opts, timeout.WithObserveOnly())
	}
	return New(defaults, perMethod, opts...)
}
