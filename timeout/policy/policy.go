package policy

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Policy holds the limits of each tool. The zero Policy and a nil *Policy give every tool the process default, over
// which the environment takes precedence. [Parse] reads a policy from a file. A Policy is safe for concurrent use as
// long as its fields are not changed and it is not copied; [Policy.Replace] changes it while it is in use.
type Policy struct {
	// Default holds the limits of tools whose Limits are nil. nil means the process default; see
	// [timeout.SetDefault]. In either case the environment is read with this policy's Lookup and names.
	Default *timeout.Config
	// Tools holds the tools by name. A tool that is not in the map has the limits of Default. A nil map is empty.
	Tools map[string]Tool

	// TotalEnv and IdleEnv are the names of the environment variables for the total and the idle limit of every tool,
	// in seconds. "" means MCP_TIMEOUT and MCP_IDLE_TIMEOUT, and "-" means no variable. Some hosts set MCP_TIMEOUT and
	// MCP_IDLE_TIMEOUT in milliseconds, for another purpose, so a value of 10 000 or more in them is accepted with a
	// warning, which is logged again only when the value has changed. Other variables cause no such warning.
	TotalEnv, IdleEnv string
	// Lookup returns the value of an environment variable and whether it is set. A call waits for it before its
	// execution begins, so no limit bounds that wait. nil means os.LookupEnv.
	Lookup func(string) (string, bool)
	// Logger receives the warnings, and the records of executions that have the options of [Policy.For]. If there
	// are warnings, a call waits for it to log them before the call's execution begins, for at most a second each.
	// nil means no logging.
	Logger *slog.Logger
	// If ObserveOnly is true, the limits of every tool are checked and reported but not enforced, as under
	// [timeout.WithObserveOnly].
	ObserveOnly bool

	doubted  [2]uint32    // the doubtful values that were logged last; see firstDoubt
	replaced atomic.Value // holds the *Policy in force after Replace

	inherited map[string]inheritance // of tools that were read from a text, by name
}

// Replace makes p use the Default and the Tools of q for every call that begins from now on. Calls in progress keep
// their limits. No field of p changes; [Policy.Current] returns the policy in force. The caller must not change q
// afterwards. Replace is safe for concurrent use. A nil q counts as the zero Policy. Replace panics if p is nil,
// because a nil policy cannot store q. A program calls Replace when the file of a policy has changed:
//
//	data, err := os.ReadFile(name)
//	...
//	if next, err := policy.Parse(data); err == nil {
//		p.Replace(next)
//	}
func (p *Policy) Replace(q *Policy) {
	if p == nil {
		panic(&timeout.ConfigError{Key: "policy", Value: "nil", Accepted: "a *policy.Policy, to replace it"})
	}
	q = q.Current()
	p.replaced.Store(p.merged(q))
}

// merged returns a policy with the Default and the Tools of q and the other fields of p. It does not copy *p as a
// whole, because other goroutines may write to its unexported fields.
func (p *Policy) merged(q *Policy) *Policy {
	return &Policy{
		Default: q.Default, Tools: q.Tools, inherited: q.inherited,
		TotalEnv: p.TotalEnv, IdleEnv: p.IdleEnv, Lookup: p.Lookup, Logger: p.Logger, ObserveOnly: p.ObserveOnly,
	}
}

// Current returns the policy in force: p itself until [Policy.Replace] is called, and then a policy with the Default
// and the Tools of Replace's argument and the other fields of p. For a nil *Policy it returns a zero Policy. The
// caller must not change the result.
func (p *Policy) Current() *Policy {
	if p == nil {
		return new(Policy)
	}
	if q, ok := p.replaced.Load().(*Policy); ok {
		return q
	}
	return p
}

// A Tool holds the settings of one tool. A tool with the zero Tool has the limits of the policy's default.
type Tool struct {
	// Limits replaces the policy's default as a whole: a limit that is 0 in Limits is off. nil means the policy's
	// default.
	Limits *timeout.Config
	// Env is the name of the environment variable for the tool's total, a whole number of milliseconds. The suffix
	// _TIMEOUT_MS may be omitted: TLC_SMOKE stands for TLC_SMOKE_TIMEOUT_MS. "" means no variable.
	Env string
	// MaxTotal is the longest total that a request may ask for; a longer total is cut to MaxTotal, with a warning.
	// MaxTotal does not bound the environment or Limits, which the operator and the author set. A negative value
	// means no such maximum, with a warning. 0 means no maximum.
	MaxTotal time.Duration
	// If ObserveOnly is true, the limits of this tool are checked and reported but not enforced. false does not
	// override a true [Policy.ObserveOnly].
	ObserveOnly bool
	// Soft is the time after which a call may be answered with a task. The call keeps running under its
	// limits, and its result is fetched later. The soft limit stops nothing, and neither a request nor
	// the environment changes it. A soft limit that is not below the total is never reached, which is
	// logged. See package progress/task. A negative value means at once. 0 means never.
	Soft time.Duration
	// If TaskOnly is true, a call is refused if its client supports neither tasks nor continuations. If Soft is 0 as
	// well, a call becomes a task at once.
	TaskOnly bool
}

// Soft returns the soft limit of a tool, which is 0 for never and -1 for at once. taskOnly reports whether calls that
// cannot become a task are refused. See [Tool.Soft] and [Tool.TaskOnly].
func (p *Policy) Soft(tool string) (soft time.Duration, taskOnly bool) {
	t := p.Current().Tools[tool]
	soft = max(t.Soft, -1)
	if t.TaskOnly && soft == 0 {
		soft = -1
	}
	return soft, t.TaskOnly
}

// Observes reports whether the limits of a tool are checked and reported but not enforced.
func (p *Policy) Observes(tool string) bool {
	p = p.Current()
	return p.ObserveOnly || p.Tools[tool].ObserveOnly
}
