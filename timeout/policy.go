package timeout

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// A Policy has the limits of each tool. The zero Policy has the process default for every
// tool, with what the environment says. It is safe for concurrent use as long as nobody
// changes or copies it, and a nil *Policy is a zero one.
type Policy struct {
	// Default is for tools that are not in Tools. Left zero, it is not set, and the
	// process default applies, see [SetDefault]; [NoLimits] sets no limits. The environment
	// is always read by this policy's Lookup and names.
	Default Config
	// Tools is by tool name.
	Tools map[string]Tool

	// TotalEnv and IdleEnv name the environment variables that have a total and an idle
	// limit for every tool, in seconds. Empty is MCP_TIMEOUT and MCP_IDLE_TIMEOUT, and
	// "-" is none. Hosts set variables of those names for purposes of their own, in
	// milliseconds; so a value of 10 000 or more is taken, and a warning logged, once for
	// each value. In a variable that is named here it is taken as it is.
	TotalEnv, IdleEnv string
	// Lookup reads the environment; nil is os.LookupEnv.
	Lookup func(string) (string, bool)
	// Logger gets the warnings; nil is nobody.
	Logger *slog.Logger
	// ObserveOnly judges and reports the limits of every tool, and enforces none, as
	// [WithObserveOnly] does: a server can be watched for a week first.
	ObserveOnly bool

	doubted [2]uint32 // the doubtful value that was logged last; see firstDoubt
}

// A Tool is the policy of one tool.
type Tool struct {
	// Config takes the place of the policy's default as a whole: a limit that is 0
	// here is off. Left zero, it is not set, and the policy's default applies, so that a
	// tool that has just an Env or a MaxTotal is not left without limits; [NoLimits] sets
	// no limits.
	Config Config
	// Env names the tool's environment variable: TLC_SMOKE stands for
	// TLC_SMOKE_TIMEOUT_MS, which may also be given in full. Empty is none.
	Env string
	// MaxTotal is a ceiling that a request cannot exceed; 0 is none, and so is a negative
	// value, with a warning. It does not bind the environment or Config, which are the
	// operator's and the author's.
	MaxTotal time.Duration
	// ObserveOnly is that of the policy for this tool alone; that of the policy is for all.
	ObserveOnly bool
	// Soft is after how long a call may be answered with a task, from which its result is
	// fetched later, while it runs on under its limits. 0 is never, and negative is at once. It
	// stops nothing, and neither a request nor the environment has a say in it. One that is not
	// below the total is never reached, and logged. See package progress/task, and
	// [Policy.Soft].
	Soft time.Duration
	// TaskOnly refuses calls from clients that can take no task. With a Soft of 0 the others get
	// theirs at once.
	TaskOnly bool
}

// Resolve returns the limits of one call of a tool, ready to be passed to [Run].
// [Policy.Run] and [DoPolicy] do both. requestTimeout is what the request asks for, 0
// where it does not.
//
// The total is the first of these that is given: the request's, at most [Tool.MaxTotal];
// the tool's own environment variable; that of the policy, MCP_TIMEOUT; the tool's Config;
// the policy's default. The idle limit is the first of the policy's variable,
// MCP_IDLE_TIMEOUT, the tool's Config and the policy's default.
//
// The result is normalised, and what had to be changed is logged. An idle limit above the
// total that the request asks for is clamped without a warning: that is nobody's mistake.
//
// A negative requestTimeout or an environment variable that cannot be read is an error that
// holds a [*ConfigError]; then the Config is zero: do not use it.
//
// A Config does not say whether its limits are enforced; Run and DoPolicy look at ObserveOnly.
func (p *Policy) Resolve(tool string, requestTimeout time.Duration) (Config, error) {
	if p == nil {
		p = &Policy{}
	}
	return p.resolve(context.Background(), tool, requestTimeout, func() *slog.Logger { return p.Logger })
}

// Soft returns the soft limit of a tool, see [Tool.Soft]: 0 for never, -1 for at once; and
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

// Run is [Run] for one call of a tool: with the limits that [Policy.Resolve] returns for
// it, the tool's name, and the policy's logger. opts come after these, so a [Config] among
// them replaces the limits, and a logger the policy's, also for what Resolve logs.
//
// An error of Resolve is Run's, and fn is not called.
func (p *Policy) Run(ctx context.Context, tool string, requested time.Duration, fn func(context.Context) error, opts ...Option) error {
	all, err := p.options(ctx, tool, requested, opts)
	if err != nil {
		return err
	}
	return Run(ctx, fn, all...)
}

// DoPolicy is [Policy.Run] for a function that returns a value, as [Do] is [Run] for one.
// It would be a method of Policy if methods could have type parameters.
func DoPolicy[T any](ctx context.Context, p *Policy, tool string, requested time.Duration, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	all, err := p.options(ctx, tool, requested, opts)
	if err != nil {
		var none T
		return none, err
	}
	return Do(ctx, fn, all...)
}

// options returns what a call runs with.
func (p *Policy) options(ctx context.Context, tool string, requested time.Duration, opts []Option) ([]Option, error) {
	if p == nil {
		p = &Policy{}
	}
	all := append(make([]Option, 0, len(opts)+4), nil, WithName(tool), WithLogger(p.Logger))
	if p.ObserveOnly || p.Tools[tool].ObserveOnly {
		all = append(all, WithObserveOnly())
	}
	all = append(all, opts...)
	limits, err := p.resolve(ctx, tool, requested, func() *slog.Logger {
		var s settings
		for _, o := range all {
			if o != nil {
				o.apply(&s)
			}
		}
		return s.log
	})
	all[0] = limits
	return all, err
}

// resolve asks for the logger only if there is something to log.
func (p *Policy) resolve(ctx context.Context, tool string, requested time.Duration, logger func() *slog.Logger) (_ Config, err error) {
	defer func() { nameTool(err, tool) }()
	warn := func(msg string, attrs ...slog.Attr) {
		if l := logger(); l != nil {
			l.LogAttrs(ctx, slog.LevelWarn, msg, append([]slog.Attr{slog.String("tool", tool)}, attrs...)...)
		}
	}
	c := p.Default
	if c == (Config{}) {
		c = inherited()
	}
	t := p.Tools[tool]
	if t.Config != (Config{}) {
		c = t.Config
	}
	doubts, err := c.overlayEnv(p.Lookup, cmp.Or(p.TotalEnv, envTotal), cmp.Or(p.IdleEnv, envIdle))
	if err != nil {
		return Config{}, err
	}
	if t.Env != "" {
		key := strings.TrimSuffix(t.Env, envToolSuffix) + envToolSuffix
		if _, err := fromEnv(p.Lookup, key, parseMillis, acceptedMillis, &c.Total); err != nil {
			return Config{}, err
		}
	}
	if requested < 0 {
		return Config{}, &ConfigError{Key: keyRequest, Value: fmt.Sprint(float64(requested) / 1e6), Accepted: "a positive whole number of milliseconds"}
	}

	for i, d := range doubts {
		if d.key != "" && logger() != nil && p.firstDoubt(i, d) {
			warn(d.String())
		}
	}
	if t.MaxTotal < 0 {
		warn("the tool's ceiling is negative; using none", slog.Duration("ceiling", t.MaxTotal))
	}
	if t.MaxTotal > 0 && requested > t.MaxTotal {
		warn("requested timeout exceeds the tool's ceiling; using the ceiling",
			slog.Duration("requested", requested), slog.Duration("ceiling", t.MaxTotal))
		requested = t.MaxTotal
	}
	if requested > 0 {
		c.Total = requested
		c.Idle = min(c.Idle, requested)
	}
	c, warnings := c.Normalize()
	for _, w := range warnings {
		warn(w)
	}
	if t.Soft > 0 && requested == 0 && c.Total > 0 && t.Soft >= c.Total {
		warn("the tool's soft limit is not below its total; no call becomes a task",
			slog.Duration("soft", t.Soft), slog.Duration("total", c.Total))
	}
	return c, nil
}

// firstDoubt reports whether a doubtful value has not been logged yet, and that it is now.
// (An atomic.Uint32 would have vet complain of a Policy that is copied before its use.)
func (p *Policy) firstDoubt(i int, d doubt) bool {
	mark := uint32(d.read/time.Second) | 1<<31 // never 0
	return atomic.SwapUint32(&p.doubted[i], mark) != mark
}
