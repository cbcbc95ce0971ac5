package request

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options are the settings of a client, for the function Limit of an adapter and for [Options.Limiter]. The zero
// Options, and nil, mean the defaults: the limits of [DefaultTimeout] and [DefaultLimits], and nothing else.
type Options struct {
	// Limits are the limits of a request for which nothing else sets limits. nil means a Timeout of [DefaultTimeout]; the
	// zero Limits mean no limits.
	Limits *Limits
	// PerMethod has the limits of requests by their method, or by a prefix of methods with a star, such as "resources/*".
	// The longest matching prefix applies. nil means [DefaultLimits]; an empty map sets no limits.
	PerMethod map[string]Limits
	// Declared, if not nil, has the client use the limits that the server has declared for a tool or a method. They take
	// precedence over Limits, but not over PerMethod and [WithLimits]: delete the entries of the methods for which they
	// are to count. A server may declare anything, so this is the ceiling of what it declares, see
	// [Declarations.Limits]; zero is no ceiling. The declarations are those of the handshake, and of each list of tools.
	Declared *Limits
	// Retry lists the methods whose requests are sent again if they time out or cannot be delivered, as names or as
	// prefixes with a star. List methods that only read, such as "tools/list" and "resources/*". Requests of the
	// handshake and those that open a stream are never sent again. A tools/call is, if "tools/call" itself is among
	// them, and the newest list of tools that the client has requested has a ReadOnlyHint or an IdempotentHint for the
	// tool. All attempts of such a call have the same [IdempotencyKey]. nil means that nothing is sent again.
	Retry []string
	// Backoff sets when and how often a request is sent again under Retry.
	Backoff Backoff
	// FollowTasks makes a client support tasks: if a server answers a tools/call with a task, the call asks for the task
	// until that has ended, and returns its result, as if it had just taken longer. See the page of the adapter.
	FollowTasks bool
	// Logger receives the records of each request's execution, whose name is the method. A record also names the tool
	// and the server. nil means no logging.
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
