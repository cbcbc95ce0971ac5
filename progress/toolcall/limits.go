package toolcall

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// LimitsKey is where the [Limits] of a tool stand in its _meta, and those that hold for a server
// as a whole in capabilities.extensions.
const LimitsKey = "io.github.tooldeadline/limits"

// Limits are what a server declares of a tool's limits, so that a client knows before the call
// how long it may take. They marshal to the wire form, in which durations are in milliseconds, with
// fractions:
//
//	{"totalMs":600000,"idleMs":120000,"graceMs":7000,"progressMs":10000,"maxTotalMs":1800000,"softMs":30000}
type Limits struct {
	// Total and Idle are what the server enforces; 0 or less is no such limit.
	Total, Idle time.Duration
	// Grace is how long after a limit an answer may come; 0 or less is no grace, or none that is
	// known.
	Grace time.Duration
	// Progress is how far apart the notifications of a tool that beats may be; 0 or less is not
	// known.
	Progress time.Duration
	// MaxTotal is how far a request's timeoutMs may raise the total. 0 is not at all, since
	// requests have no say, and less is as far as the request wants.
	MaxTotal time.Duration
	// Soft is from when on the call may be answered with a task. 0 is never, less is at once.
	Soft time.Duration
}

// Limits returns what the server declares of a tool, as the policy and the environment have it now,
// or of a tool without a name, which has the policy's defaults. A tool whose limits are only
// observed, by its policy or by [timeout.WithObserveOnly] among the Options, has none. The error is that
// of [policy.Policy.Resolve].
//
// Soft is left 0, since it takes more than a policy to answer with a task.
func (s *Settings) Limits(tool string) (Limits, error) {
	if s == nil {
		s = new(Settings)
	}
	config, err := s.Policy.Resolve(tool, 0)
	if err != nil {
		return Limits{}, err
	}
	observed := false
	for _, o := range s.Options {
		if c, ok := o.(timeout.Config); ok {
			config, _ = c.Normalize()
		}
		observed = observed || o == timeout.WithObserveOnly()
	}
	l := Limits{Total: config.Total, Idle: config.Idle, Grace: config.Grace, Progress: s.Interval}
	if l.Grace == 0 {
		l.Grace = timeout.DefaultGrace
	}
	if l.Progress == 0 {
		l.Progress = heartbeat.DefaultInterval
	}
	if observed || s.Policy.Observes(tool) {
		l.Total, l.Idle = 0, 0
	}
	if s.MetaTimeout || s.ArgumentTimeout {
		l.MaxTotal = -1
		if s.Policy != nil && s.Policy.Tools[tool].MaxTotal > 0 {
			l.MaxTotal = s.Policy.Tools[tool].MaxTotal
		}
	}
	return l, nil
}

// ReadLimits returns the limits that stand under [LimitsKey] in a tool's _meta, or in a
// server's capabilities.extensions, and false where there are none that can be used.
func ReadLimits(under map[string]any) (Limits, bool) {
	value, ok := under[LimitsKey]
	if !ok {
		return Limits{}, false
	}
	data, err := json.Marshal(value)
	if err != nil {
		return Limits{}, false
	}
	var l Limits
	return l, json.Unmarshal(data, &l) == nil
}

// Object returns the wire form, for an SDK that takes JSON objects as maps.
func (l Limits) Object() map[string]any {
	o := map[string]any{"totalMs": millis(max(l.Total, 0)), "idleMs": millis(max(l.Idle, 0))}
	if l.Grace > 0 {
		o["graceMs"] = millis(l.Grace)
	}
	if l.Progress > 0 {
		o["progressMs"] = millis(l.Progress)
	}
	if l.MaxTotal != 0 {
		o["maxTotalMs"] = millis(max(l.MaxTotal, 0))
	}
	if l.Soft != 0 {
		o["softMs"] = millis(max(l.Soft, 0))
	}
	return o
}

// MarshalJSON returns the wire form.
func (l Limits) MarshalJSON() ([]byte, error) { return json.Marshal(l.Object()) }

// UnmarshalJSON reads the wire form. A totalMs or idleMs that is missing, and a value that is not a
// number from 0 to 2^53, void the whole object: the error is a [*timeout.ConfigError], and l is
// left as it was. What a time.Duration cannot hold is taken as the longest that it can, and names
// that are not known are passed over.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage // a struct would match TOTALMS too
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("toolcall: declared limits: %w", err)
	}
	var read Limits
	for _, f := range []struct {
		name   string
		to     *time.Duration
		needed bool
		ifZero time.Duration // what a 0 stands for
	}{
		{"totalMs", &read.Total, true, 0}, {"idleMs", &read.Idle, true, 0},
		{"graceMs", &read.Grace, false, 0}, {"progressMs", &read.Progress, false, 0},
		{"maxTotalMs", &read.MaxTotal, false, -1}, {"softMs", &read.Soft, false, -1},
	} {
		value, ok := fields[f.name]
		if !ok && !f.needed {
			continue
		}
		d, ok := fromMillis(value)
		if !ok {
			return &timeout.ConfigError{Key: f.name, Value: string(value), Accepted: "a number of milliseconds from 0 to 2^53"}
		}
		if *f.to = d; d == 0 {
			*f.to = f.ifZero
		}
	}
	*l = read
	return nil
}

// maxMillis is the largest number up to which JSON numbers are exact integers everywhere.
const maxMillis = 1 << 53

// fromMillis rounds up, so that a limit, however short, does not become none.
func fromMillis(value json.RawMessage) (time.Duration, bool) {
	var ms *float64
	if len(value) == 0 || json.Unmarshal(value, &ms) != nil || ms == nil || *ms < 0 || *ms > maxMillis {
		return 0, false
	}
	ns := math.Ceil(*ms * float64(time.Millisecond))
	if ns >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(ns), true
}
