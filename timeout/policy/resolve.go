package policy

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The environment variables, and the suffix of a tool's variable (SPEC 2.7).
const (
	envTotal      = "MCP_TIMEOUT"
	envIdle       = "MCP_IDLE_TIMEOUT"
	envToolSuffix = "_TIMEOUT_MS"
)

// For returns the options for one call of a tool: the limits that [Policy.Resolve] returns, the tool's name, the
// policy's logger, and [timeout.WithObserveOnly] if the limits are only observed. If Resolve fails, the run returns
// its error without calling the function.
//
// Options that the caller appends take precedence, such as a [timeout.Config] or a logger:
//
//	timeout.Run(ctx, fn, append(p.For("search", requested), opts...)...)
func (p *Policy) For(tool string, requested time.Duration) []timeout.Option {
	p = p.Current() // all options must be of the same policy, even if Replace is called meanwhile
	limits, err := p.Resolve(tool, requested)
	opts := append(make([]timeout.Option, 0, 8), limits, timeout.WithName(tool))
	if p.Logger != nil {
		opts = append(opts, timeout.WithLogger(p.Logger))
	}
	if p.Observes(tool) {
		opts = append(opts, timeout.WithObserveOnly())
	}
	if err != nil {
		opts = append(opts, timeout.Refuse(err))
	}
	return opts
}

// Resolve returns the limits for one call of a tool. requested is the total that the request asks for,
// or 0 if it asks for none.
//
// The total is the first of these that is given: requested, at most [Tool.MaxTotal]; the tool's environment variable;
// the policy's environment variable, which is MCP_TIMEOUT or the one in TotalEnv; the tool's Limits; the policy's
// Default; the process default. The idle limit is the first that is given of the policy's environment variable, which
// is MCP_IDLE_TIMEOUT or the one in IdleEnv, the tool's Limits, the policy's Default and the process default.
//
// The result is normalised (see [timeout.Config.Normalize]), and each change is logged. An idle limit above a total
// that the request asked for, and a reserve that is not below that total, are clamped without a warning, because they
// are not mistakes.
//
// If requested is negative or an environment variable cannot be read, the error is a [*timeout.ConfigError], and the
// Config must not be used. The Config does not say whether the limits are enforced; see [Policy.Observes].
func (p *Policy) Resolve(tool string, requested time.Duration) (timeout.Config, error) {
	r, err := p.Current().resolve(tool, requested)
	return r.Config, err
}

// A resolved is a Config with the source of each of its limits.
type resolved struct {
	timeout.Config
	total, idle, grace, reserve string
	doubts                      [2]doubt
}

func (p *Policy) resolve(tool string, requested time.Duration) (resolved, error) {
	r, err := p.configured(tool)
	if err == nil && requested < 0 {
		err = &timeout.ConfigError{Tool: tool, Key: keyRequest, Value: strconv.FormatFloat(float64(requested)/1e6, 'f', -1, 64), Accepted: "a positive whole number of milliseconds"}
	}
	if err != nil {
		return resolved{}, err
	}
	for i, d := range r.doubts {
		if d.warning != "" && p.Logger != nil && p.firstDoubt(i, d) {
			p.warn(tool, d.warning)
		}
	}
	t := p.Tools[tool]
	if t.MaxTotal < 0 {
		p.warn(tool, "the tool's ceiling is negative; using none", slog.Duration("ceiling", t.MaxTotal))
	}
	if requested > 0 {
		r.total = fromRequest
	}
	asked := requested
	if t.MaxTotal > 0 && asked > t.MaxTotal {
		p.warn(tool, "requested timeout exceeds the tool's ceiling; using the ceiling",
			slog.Duration("requested", requested), slog.Duration("ceiling", t.MaxTotal))
		asked, r.total = t.MaxTotal, fromCeiling
	}
	idle, reserve := r.Idle, r.Reserve
	if asked > 0 {
		r.Total = asked
		r.Idle = min(r.Idle, asked)
		if r.Reserve >= asked {
			r.Reserve = asked / 2
		}
	}
	var warnings []string
	r.Config, warnings = r.Normalize()
	for _, w := range warnings {
		p.warn(tool, w)
	}
	if idle > r.Idle {
		r.idle += cutToTotal
	}
	if reserve > r.Reserve {
		r.reserve += cutToHalf
	}
	if t.Soft > 0 && asked == 0 && r.Total > 0 && t.Soft >= r.Total {
		p.warn(tool, "the tool's soft limit is not below its total; no call becomes a task",
			slog.Duration("soft", t.Soft), slog.Duration("total", r.Total))
	}
	return r, nil
}

// A doubt describes a value in the environment that may have been meant in another unit.
type doubt struct {
	warning string // "" if there is no doubt
	read    time.Duration
}

// base returns the limits of a tool without Limits, before the environment is applied.
func (p *Policy) base() timeout.Config {
	if p.Default != nil {
		return *p.Default
	}
	if c, set := timeout.ProcessDefault(); set {
		return c
	}
	return timeout.Default() // ProcessDefault includes the environment, which configured applies
}

// configured returns the limits of a tool with the environment applied, but no request.
func (p *Policy) configured(tool string) (r resolved, _ error) {
	t := p.Tools[tool]
	if t.Limits != nil {
		r.Config = *t.Limits
	} else {
		r.Config = p.base()
	}
	i := p.inherited[tool]
	r.total = i.from(t.Limits, "timeout", func(c *timeout.Config) time.Duration { return c.Total })
	r.idle = i.from(t.Limits, "idle_timeout", func(c *timeout.Config) time.Duration { return c.Idle })
	r.grace = i.from(t.Limits, "grace", func(c *timeout.Config) time.Duration { return c.Grace })
	r.reserve = i.from(t.Limits, "reserve", func(c *timeout.Config) time.Duration { return c.Reserve })
	if r.Grace == 0 {
		r.grace = fromDefault
	}
	// The first variable that cannot be read is the error: joined errors would not be a *timeout.ConfigError, and
	// would not name the tool.
	var bad error
	read := func(u setting.Unit, key string, d *time.Duration, from *string) (text string) {
		text, ok := u.Env(p.Lookup, key, d)
		if !ok && bad == nil {
			bad = &timeout.ConfigError{Tool: tool, Key: key, Value: text, Accepted: u.Accepted}
		}
		if text != "" {
			*from = key
		}
		return text
	}
	total, idle := cmp.Or(p.TotalEnv, envTotal), cmp.Or(p.IdleEnv, envIdle)
	if text := read(setting.Seconds, total, &r.Total, &r.total); total == envTotal { // hosts use this name, too
		r.doubts[0] = doubt{setting.Doubt(total, text, r.Total), r.Total}
	}
	if text := read(setting.Seconds, idle, &r.Idle, &r.idle); idle == envIdle {
		r.doubts[1] = doubt{setting.Doubt(idle, text, r.Idle), r.Idle}
	}
	if t.Env != "" {
		read(setting.Millis, strings.TrimSuffix(t.Env, envToolSuffix)+envToolSuffix, &r.Total, &r.total)
	}
	return r, bad
}

func (p *Policy) warn(tool, msg string, attrs ...slog.Attr) {
	if p.Logger != nil {
		// on another goroutine, for at most a second, because no limit bounds the call yet
		texts.Ask(func() {
			p.Logger.LogAttrs(context.Background(), slog.LevelWarn, msg, append([]slog.Attr{slog.String("tool", tool)}, attrs...)...)
		})
	}
}

// firstDoubt reports whether a doubtful value differs from the last one that was logged, and marks it as logged. It
// uses no atomic.Uint32, with which vet would reject copies of a Policy that is not in use yet.
func (p *Policy) firstDoubt(i int, d doubt) bool {
	mark := uint32(d.read/time.Second) | 1<<31 // never 0
	return atomic.SwapUint32(&p.doubted[i], mark) != mark
}
