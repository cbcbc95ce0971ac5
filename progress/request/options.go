package request

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Options holds the settings of a client, for the function Limit of an adapter and for [New]. The zero
// Options, and a nil *Options, mean a Timeout of 60 s, the limits of [DefaultLimits], and no other feature.
type Options struct {
	// Limits applies to requests for which neither PerMethod nor a declaration nor [WithLimits] sets limits. nil means
	// a Timeout of 60 s; the zero Limits means no limits.
	Limits *Limits
	// PerMethod maps a method, or a prefix of methods with a star, such as "resources/*", to limits. The method itself
	// takes precedence, and then the longest matching prefix. nil means [DefaultLimits]; an empty map sets no limits.
	PerMethod map[string]Limits
	// Declared, if not nil, makes the client apply the limits that the server declares in the handshake and in lists of
	// tools. Declared limits take precedence over Limits, but not over PerMethod and [WithLimits]: to apply them to a
	// method, delete its entry from PerMethod. A server may declare anything, so Declared is the ceiling of its
	// declarations; see [Declarations.Limits]. The zero Limits means no ceiling.
	Declared *Limits
	// Retry lists the methods whose requests are repeated if they time out or cannot be delivered, as names or as
	// prefixes with a star. List methods that only read, such as "tools/list" and "resources/*". Requests of the
	// handshake and requests that open a stream are never repeated. A tools/call is repeated if Retry contains
	// "tools/call", and the newest list of tools that the client has received has a ReadOnlyHint or an IdempotentHint
	// for the tool. All attempts of such a call have the same [IdempotencyKey]. nil means no retries.
	Retry []string
	// Backoff sets when and how often a request is repeated.
	Backoff Backoff
	// FollowTasks makes the client support tasks: if a server answers a tools/call with a task, the call polls the task
	// until it has ended, and returns the result of the task. See the documentation of the adapter.
	FollowTasks bool
	// Logger receives the records of each request's execution. A record names the method, the tool and the server. nil
	// means no logging.
	Logger *slog.Logger
	// Hooks are called for each request's execution.
	Hooks timeout.Hooks
	// ObserveOnly makes the limits only report which requests they would have stopped, in order to find suitable
	// limits.
	ObserveOnly bool
}
