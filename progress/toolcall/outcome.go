package toolcall

import (
	"errors"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// OutcomeKey is where an [Outcome] stands in a result's _meta.
const OutcomeKey = "io.github.tooldeadline/outcome"

// An Outcome is what a tool's result says, for programs, about an execution that was
// stopped. Durations are in milliseconds, with fractions; a limit of 0 is off.
type Outcome struct {
	Kind     string `json:"kind"`     // idle, total or aborted
	ExitCode int    `json:"exitCode"` // 124 or 130

	Limit float64 `json:"limitMs"` // the limit that fired; 0 for an abort
	Total float64 `json:"totalMs"` // both limits, as they were enforced
	Idle  float64 `json:"idleMs"`

	Elapsed    float64 `json:"elapsedMs"`    // to the stop
	LongestGap float64 `json:"longestGapMs"` // between two heartbeats
	Beats      uint64  `json:"beats"`
	Last       string  `json:"last,omitempty"`      // where it had got to, such as file 37 of 100
	Abandoned  bool    `json:"abandoned,omitempty"` // the function had not returned when the call was answered
}

// OutcomeOf returns the outcome of the execution that err is about, and false where err
// has no [*timeout.Error] in its tree.
func OutcomeOf(err error) (Outcome, bool) {
	var e *timeout.Error
	if !errors.As(err, &e) {
		return Outcome{}, false
	}
	return Outcome{
		Kind: e.Kind.String(), ExitCode: e.ExitCode(),
		Limit: millis(e.Limit), Total: millis(e.Limits.Total), Idle: millis(e.Limits.Idle),
		Elapsed: millis(e.Elapsed), LongestGap: millis(e.LongestGap),
		Beats: e.Beats, Last: lastOf(err), Abandoned: e.Abandoned,
	}, true
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
