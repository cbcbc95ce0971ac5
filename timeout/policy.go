package timeout

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A Policy gives each tool its limits. The zero Policy gives every tool the process
// default, or what the environment says. It is safe for concurrent use as long as
// nobody changes it, and a nil *Policy is a zero one.
type Policy struct {
	// Default is for tools that are not in Tools. The zero Config means the process
	// default, see SetDefault.
	Default Config
	// Tools is by tool name.
	Tools map[string]Tool
	// Lookup reads the environment; nil is os.LookupEnv.
	Lookup func(string) (string, bool)
	// Logger gets the warnings; nil is nobody.
	Logger *slog.Logger
}

// A Tool is the policy of one tool.
type Tool struct {
	// Config takes the place of the policy's default as a whole: a limit that is 0
	// here is off. Only the zero Config means the policy's default, so that a tool that
	// has just an Env or a MaxTotal is not left without limits.
	Config Config
	// Env names the tool's environment variable: TLC_SMOKE stands for
	// TLC_SMOKE_TIMEOUT_MS, which may also be given in full. Empty is none.
	Env string
	// MaxTotal is a ceiling that a request cannot exceed; 0 is none, and so is a
	// negative value, with a warning. It does not bind the environment or Config, which are the operator's and the author's.
	MaxTotal time.Duration
}

// Resolve gives the limits of one call of a tool, ready to be passed to [Run].
// requestTimeout is what the request asks for, 0 where it does not.
//
// The total is the first of these that is given: the request's, at most
// [Tool.MaxTotal]; the tool's own environment variable; MCP_TIMEOUT; the tool's
// Config; the policy's default. The idle limit is the first of MCP_IDLE_TIMEOUT, the
// tool's Config and the policy's default (SPEC 2.6, 2.7). The result is normalised.
// What had to be clamped is logged.
//
// A negative requestTimeout or an environment variable that cannot be read is an
// error that holds a [*ConfigError]; then the Config is zero: do not use it.
func (p *Policy) Resolve(tool string, requestTimeout time.Duration) (Config, error) {
	if p == nil {
		p = &Policy{}
	}
	c := p.Default
	if c == (Config{}) {
		c = currentDefault()
	}
	t := p.Tools[tool]
	if t.Config != (Config{}) {
		c = t.Config
	}
	if err := c.overlayEnv(p.Lookup); err != nil {
		return Config{}, err
	}
	if t.Env != "" {
		key := strings.TrimSuffix(t.Env, envToolSuffix) + envToolSuffix
		if err := fromEnv(p.Lookup, key, parseMillis, acceptedMillis, &c.Total); err != nil {
			return Config{}, err
		}
	}
	if t.MaxTotal < 0 {
		p.warn("the tool's ceiling is negative; using none", slog.String("tool", tool), slog.Duration("ceiling", t.MaxTotal))
	}
	switch {
	case requestTimeout < 0:
		return Config{}, &ConfigError{Key: "timeoutMs", Value: fmt.Sprint(float64(requestTimeout) / 1e6), Accepted: "a positive whole number of milliseconds"}
	case t.MaxTotal > 0 && requestTimeout > t.MaxTotal:
		p.warn("requested timeout exceeds the tool's ceiling; using the ceiling",
			slog.String("tool", tool), slog.Duration("requested", requestTimeout), slog.Duration("ceiling", t.MaxTotal))
		c.Total = t.MaxTotal
	case requestTimeout > 0:
		c.Total = requestTimeout
	}
	c, warnings := c.Normalize()
	for _, w := range warnings {
		p.warn(w, slog.String("tool", tool))
	}
	return c, nil
}

func (p *Policy) warn(msg string, attrs ...any) {
	if p.Logger != nil {
		p.Logger.Warn(msg, attrs...)
	}
}
