package toolcall

import (
	"errors"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// OutcomeKey is the key of an [Outcome] in the _meta of a result.
const OutcomeKey = "io.github.tooldeadline/outcome"

// An Outcome describes, in the _meta of a tool's result, an execution that was stopped, or that returned with little of
// its total left. Durations are in milliseconds, with fractions; a limit of 0 is off.
type Outcome struct {
	// Kind is idle, total or aborted if the execution was stopped, and returned if the tool has returned in time. For a
	// command of package procgroup that was stopped because of its behaviour, Kind is waiting_for_input,
	// stopped_by_the_terminal, out_of_memory or too_much_output.
	Kind     string `json:"kind"`
	ExitCode int    `json:"exitCode"` // 124 for a limit, 130 for an abort; otherwise timeout.ExitCode of the error

	Cause  string `json:"cause,omitempty"`  // the cause of an abort, as CauseOf returns it
	Reason string `json:"reason,omitempty"` // the client's reason for an abort, cut after 200 bytes, with ...

	Limit float64 `json:"limitMs"` // the limit that fired; 0 if none did
	Total float64 `json:"totalMs"` // the total that was enforced
	Idle  float64 `json:"idleMs"`  // the idle limit that was enforced

	// Left is the time that was left of Total when the execution ended. It is nil without a Total, and unless that time
	// was less than a tenth of Total, or less than the Reserve of the limits.
	Left *float64 `json:"leftMs,omitempty"`

	Elapsed    float64 `json:"elapsedMs"`    // from the start to the stop, or to the return
	LongestGap float64 `json:"longestGapMs"` // the longest time without a heartbeat; holds and stalls do not count
	Beats      uint64  `json:"beats"`
	Last       string  `json:"last,omitempty"`      // the last reported progress, such as file 37 of 100
	Abandoned  bool    `json:"abandoned,omitempty"` // the function had not returned when the grace was over
}

// OutcomeOf returns the outcome of the execution that err reports. The bool is false if err contains neither a
// [*timeout.Error] nor the error of a command of package procgroup that was stopped because of its behaviour, or if a
// method of err panics or does not return within 1 s.
func OutcomeOf(err error) (Outcome, bool) {
	if err == nil {
		return Outcome{}, false
	}
	found := new(struct {
		Outcome
		ok bool
	})
	if !texts.Ask(func() { found.Outcome, found.ok = outcomeOf(err) }) {
		return Outcome{}, false
	}
	return found.Outcome, found.ok
}

func outcomeOf(err error) (Outcome, bool) {
	if c := ownStopOf(err); c != nil {
		f := c.Figures()
		return Outcome{
			Kind: strings.ReplaceAll(c.CommandStop(), " ", "_"), ExitCode: c.ExitCode(),
			Total: millis(f.Limits.Total), Idle: millis(f.Limits.Idle), Left: left(f.Limits, f.Elapsed),
			Elapsed: millis(f.Elapsed), LongestGap: millis(f.LongestGap),
			Beats: f.Beats, Last: progress.UpdateOf(f.Detail).String(),
		}, true
	}
	var e *timeout.Error
	if !errors.As(err, &e) {
		return Outcome{}, false
	}
	o := Outcome{
		Kind: e.Kind.Error(), ExitCode: e.ExitCode(),
		Limit: millis(e.Limit), Total: millis(e.Limits.Total), Idle: millis(e.Limits.Idle), Left: left(e.Limits, e.Elapsed),
		Elapsed: millis(e.Elapsed), LongestGap: millis(e.LongestGap),
		Beats: e.Beats, Last: lastOf(err), Abandoned: e.Abandoned,
	}
	if e.Kind == timeout.ErrAborted {
		o.Cause = causeOf(e)
		var cancelled *CancelledError
		if errors.As(e.Cause, &cancelled) {
			o.Reason = cancelled.short()
		}
	}
	return o, true
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// left returns the time that is left of the total, in milliseconds. It returns nil if there is no total, or if so much
// is left that a model need not consider it (SPEC 7.11).
func left(limits timeout.Config, elapsed time.Duration) *float64 {
	rest := max(limits.Total-elapsed, 0)
	if limits.Total <= 0 || rest >= max(limits.Total/10, limits.Reserve) {
		return nil
	}
	ms := millis(rest)
	return &ms
}
