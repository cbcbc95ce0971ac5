package adapter

import (
	"context"
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Options are the settings of Install and Handler of an adapter. The zero Options, and nil, mean the defaults: the
// limits of the process default and the environment, see [timeout.SetDefault], and nothing else. What contradicts
// itself, and what a Handler has no use for, is refused with a panic of a [*timeout.ConfigError].
type Options struct {
	// Limits are the limits of every tool. nil means those of Policy. The environment can change them, as it can
	// change those of a Policy without names. Set at most one of Limits and Policy.
	Limits *timeout.Config
	// Policy has limits by the names of tools, from a file perhaps. nil means a zero Policy.
	Policy *policy.Policy
	// Interval is the shortest time between two progress notifications of a call. 0 means 10 s; a negative interval means
	// no pause between them.
	Interval time.Duration
	// MetaTimeout lets a request set its total with timeoutMs in its _meta, and ArgumentTimeout with a timeoutMs among
	// the tool's arguments, which the tool also gets: a positive whole number of milliseconds, which is cut to the
	// tool's [policy.Tool.MaxTotal]. If the value is anything else, the tool is not called, and the result says so. If
	// both are set, _meta takes precedence. Both are off by default, because without a MaxTotal a request could lift
	// every limit. Declare the argument in the tool's input schema, as an integer that is not required: models learn of
	// it there, and a server that checks arguments against the schema, as the official SDK does for a typed tool, may
	// otherwise refuse it.
	MetaTimeout, ArgumentTimeout bool
	// Logger receives the records of each call's execution. nil means the Logger of the policy.
	Logger *slog.Logger
	// Hooks are called for each call's execution. Package oteltimeout has hooks for traces and metrics.
	Hooks timeout.Hooks
	// Clock is the clock of the limits, from [timeout.WithClock]. nil means the clock of the system.
	Clock timeout.Setting

	// The fields below are for a server, and not for a Handler, except that a Handler of package mcpgo has Await.

	// Await is how questions to a person wait under [progress.Await]. For example, progress.Wait{Limit: 45 * time.Second,
	// ProgressLimit: 10 * time.Minute} gives people more time than the default of 30 s, or 120 s if the call has a
	// progress token. It applies to elicitations with package mcpsdk, and with mcpgo to the questions that tools return.
	Await progress.Wait
	// Requests, if not nil, makes every request of a tool to the client that is not an elicitation, such as
	// sampling/createMessage, hold the idle check too: it waits under [progress.AwaitReply] with this Wait, and not
	// with that of Await. nil means that the idle limit of the tool stops a call whose client does not reply. A
	// request within an execution that the tool has begun is left to the limits of that execution. Package mcpgo
	// does not see such requests, so its Install panics if Requests is set; its Sample takes a Wait.
	Requests *progress.Wait
	// Declare makes the server declare the limits of its tools, so that a client knows before a call how long the call
	// may take. Each tool has its limits in its _meta, and capabilities.extensions has those of tools that the policy
	// does not name, both under [policy.DeclarationKey]. They are those of the policy and the environment when the
	// tools are listed. A tool whose limits cannot be read declares none; its calls return the error. The limits that a
	// Handler adds are not declared.
	Declare bool
	// Methods are limits of requests that call no tool, by their method, such as "tools/list", or by a prefix with a
	// star, such as "resources/*", which are declared as well, and not enforced. nil means none. They need Declare.
	Methods map[string]policy.Declaration
	// Tasks has long calls answered with a task: when the tool's soft limit, see [policy.Tool], is reached, the client
	// gets a handle, and fetches the result later; see the page of the adapter. If each request has its own server, give
	// the same Tasks to all of them. nil means no tasks.
	Tasks *task.Tasks
	// Continuation continues the calls of clients without tasks that take long. Such a call is answered with an
	// ordinary result: "Still running", and the name of another tool that waits for the rest, which Install adds. The
	// tool that was called runs on under its limits. If After is shorter than the timeout of a client, that client
	// loses no call. Without Tasks, Install keeps the continued calls itself. nil means that no call is continued.
	Continuation *Continuation
	// Hosts has calls answered in time for the hosts that package hosts knows, by the name that a client gives at
	// initialize: a call that the host would give up becomes a continuation before that, a sixth of the host's limit
	// earlier, at most 10 s. Hosts never stops a call. If Continuation is nil, only the calls of such hosts and of
	// tools with a soft limit are continued. A Continuation with an After above 0 turns Hosts off. The host that was
	// found is logged once per session.
	Hosts bool
	// Idempotency answers a repeated call with the result of the first, so that a client may send a call again if it
	// got no answer. Two calls are the same if they have the same [request.IdempotencyKey], client, tool and
	// arguments. A call that comes while the first is running waits for it, and gets no progress. A result is not
	// kept if the call was aborted, was answered with a JSON-RPC error, or may have been stopped because its client
	// would have given up, or if the result asks a person. At most 1000 results are kept in this process, of at most
	// 16 MiB together, for 10 min; beyond that the oldest result of the client with the largest part is dropped.
	Idempotency bool
	// Principal returns the name under which a client was authenticated, from the context of its request, or "" if
	// the client was not authenticated. A task belongs to the principal of its call or, without one, to the session,
	// and no other client can ask for it. Without a principal and a session, as over stateless HTTP without
	// authentication, any client that knows the id can. If Principal panics, or has not returned within 5 s, the
	// request gets a principal of its own, which no other request has. nil means the UserID of the SDK's TokenInfo
	// with package mcpsdk, and no principal with package mcpgo. Principal needs Tasks, Continuation, Hosts or
	// Idempotency, which alone use it.
	Principal func(context.Context) string
}

// refuse panics with a [*timeout.ConfigError].
func refuse(key, value, accepted string) {
	panic(&timeout.ConfigError{Key: "Options." + key, Value: value, Accepted: accepted})
}

// calls returns the settings for calls of tools.
func (o *Options) calls() toolcall.Settings {
	if o.Limits != nil && o.Policy != nil {
		refuse("Limits", "set beside a Policy", "one of Limits and Policy: the Default of a Policy has the limits of every tool")
	}
	s := toolcall.Settings{Policy: o.Policy, Interval: o.Interval, MetaTimeout: o.MetaTimeout, ArgumentTimeout: o.ArgumentTimeout,
		Logger: o.Logger, Options: []timeout.Setting{timeout.WithHooks(o.Hooks)}}
	if o.Limits != nil {
		limits := *o.Limits
		s.Policy = &policy.Policy{Default: &limits}
	}
	if o.Clock != nil {
		s.Options = append(s.Options, o.Clock)
	}
	return s
}
