package policy

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Policy has the limits of each tool. The zero Policy has the process default for every tool, with
// what the environment says. It is safe for concurrent use as long as nobody changes or copies it, and a
// nil *Policy is a zero one.
type Policy struct {
	// Default is for tools without limits of their own. nil means the process default, see
	// [timeout.SetDefault]; the environment is always read by this policy's Lookup and names.
	Default *timeout.Config
	// Tools has the tools by name.
	Tools map[string]Tool

	// TotalEnv and IdleEnv name the environment variables of the total and of the idle limit of every
	// tool, in seconds. "" means MCP_TIMEOUT and MCP_IDLE_TIMEOUT, and "-" means none. Hosts set
	// variables of those two names for purposes of their own, in milliseconds; so a value of 10 000 or
	// more in them is taken, and a warning logged, once for each value. A variable that is named here is
	// taken as it is.
	TotalEnv, IdleEnv string
	// Lookup reads the environment. nil means os.LookupEnv.
	Lookup func(string) (string, bool)
	// Logger gets the warnings, and the records of executions with the options of [Policy.For]. nil
	// means none.
	Logger *slog.Logger
	// ObserveOnly judges and reports the limits of every tool, and enforces none, as
	// [timeout.WithObserveOnly] does. A server can be watched for a week first.
	ObserveOnly bool

	doubted [2]uint32 // the doubtful value that was logged last; see firstDoubt
}

// A Tool is the policy of one tool.
type Tool struct {
	// Limits replaces the policy's default as a whole: a limit that is 0 here is off. nil means the
	// policy's default.
	Limits *timeout.Config
	// Env names the tool's environment variable: TLC_SMOKE stands for TLC_SMOKE_TIMEOUT_MS, which may
	// also be given in full. "" means none.
	Env string
	// MaxTotal is a ceiling that a request cannot exceed. It does not bind the environment or Limits,
	// which are the operator's and the author's. 0 means none, and so does a negative value, with a
	// warning.
	MaxTotal time.Duration
	// ObserveOnly is that of the policy for this tool alone. A policy that observes all tools
	// observes this one too.
	ObserveOnly bool
	// Soft is the time after which a call may be answered with a task. The call runs on under its limits,
	// and its result is fetched later. A soft limit stops nothing, and neither a request nor the
	// environment changes it. One that is not below the total is never reached, and logged. See package
	// progress/task, and [Policy.Soft]. 0 means never, and a negative value at once.
	Soft time.Duration
	// TaskOnly refuses calls from clients that cannot take a task. With a Soft of 0 other clients get
	// theirs at once.
	TaskOnly bool
}

// Soft returns the soft limit of a tool, see [Tool.Soft]: 0 for never, -1 for at once. It also reports
// whether calls that cannot become a task are refused.
func (p *Policy) Soft(tool string) (soft time.Duration, taskOnly bool) {
	if p == nil {
		return 0, false
	}
	t := p.Tools[tool]
	soft = max(t.Soft, -1)
	if t.TaskOnly && soft == 0 {
		soft = -1
	}
	return soft, t.TaskOnly
}

// Observes reports whether the limits of a tool are judged and not enforced.
func (p *Policy) Observes(tool string) bool {
	return p != nil && (p.ObserveOnly || p.Tools[tool].ObserveOnly)
}
