package toolcall

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/exact"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// A Settings holds the settings that the calls of one server share. With the zero Settings each tool has the limits of
// the zero [policy.Policy]. A nil *Settings means the zero Settings. A Settings is safe for concurrent use as long as
// it is not changed.
type Settings struct {
	// Policy holds the limits by tool name, and the logger. nil means the zero [policy.Policy].
	Policy *policy.Policy
	// Limits, if it is not nil, holds the limits of every tool, in place of those of the policy, the environment and
	// the request.
	Limits *timeout.Config
	// Logger receives the records of each call's execution, and a warning about a budget that cannot be read. nil means
	// the logger of the policy.
	Logger *slog.Logger
	// Options holds further options for the execution of each call, such as hooks or a clock. Do refuses
	// [timeout.WithObserveOnly] with a [*timeout.ConfigError], because the server would declare limits that it does not
	// enforce: set ObserveOnly of the Policy instead.
	Options []timeout.Setting
	// Interval is the shortest time between two progress notifications of a call, except that the last one need not
	// wait, and that the idle limit of a client's [policy.Budget] shortens a longer Interval. 0 means 10 s; a negative
	// Interval means no pause between notifications.
	Interval time.Duration
	// MetaTimeout allows a request to set its total with timeoutMs in its _meta, and ArgumentTimeout with timeoutMs
	// among its arguments: a positive whole number of milliseconds, which is cut to the tool's [policy.Tool.MaxTotal].
	// If a request has both, _meta takes precedence. Any other value but null is an error of [Do]. If Limits is set, the
	// total of the request has no effect. The default is false, because without a MaxTotal a request could ask for a
	// total without a bound.
	MetaTimeout, ArgumentTimeout bool

	ignored uint32 // 1 if an unreadable budget has been logged; accessed atomically
}

// check returns a [*timeout.ConfigError] if Options has an option that [Do] refuses.
func (s *Settings) check() error {
	for _, o := range s.Options {
		if o == timeout.WithObserveOnly() {
			return &timeout.ConfigError{Key: "Settings.Options", Value: "timeout.WithObserveOnly()", Accepted: "ObserveOnly of the policy or of one of its tools"}
		}
	}
	return nil
}

// budget returns the budget that the client of a call has declared, or the zero Budget if there is none. A budget that
// cannot be read is ignored, and logged once.
func (s *Settings) budget(meta map[string]any) policy.Budget {
	b, err := policy.ReadBudget(meta)
	if err != nil && atomic.SwapUint32(&s.ignored, 1) == 0 {
		if log := s.logger(); log != nil { // with a bound, because no limit applies to the call yet
			texts.Ask(func() {
				log.LogAttrs(context.Background(), slog.LevelWarn, "the budget that a client sends is ignored", slog.Any("error", err))
			})
		}
	}
	return b
}

// requested returns the value of timeoutMs in the request, which may be invalid, or nil if the request has none or the
// Settings do not allow it. For an argument that is given twice it returns a value that is invalid.
func (s *Settings) requested(c *Call) any {
	if s.MetaTimeout {
		if v := c.Meta[timeoutKey]; v != nil {
			return v
		}
	}
	if !s.ArgumentTimeout {
		return nil
	}
	switch args := c.Arguments.(type) {
	case map[string]any:
		return args[timeoutKey]
	case json.RawMessage:
		if !bytes.Contains(args, []byte(timeoutKey)) && !bytes.ContainsRune(args, '\\') {
			return nil
		}
		var value json.RawMessage
		times := 0
		err := exact.Members(args, func(m exact.Member) error { // unlike encoding/json, respects case
			if m.Key == timeoutKey {
				value = m.Value
				times++
			}
			return nil
		})
		if times > 1 { // the tool may use another of the values
			value = json.RawMessage("more than one value")
		}
		if err == nil && times > 0 {
			return value
		}
	}
	return nil
}

const timeoutKey = "timeoutMs"

// logger returns the logger of the calls, or nil for no logging.
func (s *Settings) logger() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return s.Policy.Current().Logger
}
