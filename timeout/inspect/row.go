package inspect

import (
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A row holds the fields of an execution that the page shows. The JSON form has the same fields, with durations in
// milliseconds.
type row struct {
	ID         uint64    `json:"id"`
	Parent     uint64    `json:"parent,omitempty"`
	Tool       string    `json:"tool"`
	State      string    `json:"state"`
	Outcome    string    `json:"outcome,omitempty"`
	Start      time.Time `json:"start"` // to the second
	Elapsed    millis    `json:"elapsedMs"`
	Silent     millis    `json:"silentMs"`
	LongestGap millis    `json:"longestGapMs"`
	Beats      uint64    `json:"beats"`
	Total      millis    `json:"totalMs"` // 0 means none
	Idle       millis    `json:"idleMs"`  // 0 means none
	Held       millis    `json:"heldMs,omitempty"`
	Stalls     int       `json:"stalls,omitempty"`
	Observed   bool      `json:"observeOnly,omitempty"`
	Closing    bool      `json:"closing,omitempty"`
	// WouldStop is the limit that would have stopped the execution first if the limits were enforced, and WouldStopAt
	// is the time at which it would have done so.
	WouldStop   string  `json:"wouldStop,omitempty"`
	WouldStopAt millis  `json:"wouldStopAtMs,omitempty"`
	Abandoned   bool    `json:"abandoned,omitempty"`
	Detail      string  `json:"detail,omitempty"`
	Error       string  `json:"error,omitempty"`
	Leftovers   string  `json:"leftovers,omitempty"`
	Stack       string  `json:"stack,omitempty"`
	Near        float64 `json:"-"` // the fraction of the idle limit that has passed since the last heartbeat
	state       timeout.State
}

func newRow(s *timeout.Snapshot) row {
	w := row{
		ID: s.ID, Parent: s.Parent, Tool: texts.Short(s.Tool, maxText), state: s.State, State: s.State.String(), Start: s.Start.Truncate(time.Second),
		Elapsed: millis(s.Elapsed), Silent: millis(s.SinceBeat), LongestGap: millis(s.LongestGap), Beats: s.Beats,
		Total: millis(s.Limits.Total), Idle: millis(s.Limits.Idle), Held: millis(s.Held), Stalls: s.Stalls, Observed: s.ObserveOnly, Closing: s.Closing,
		Detail: textOf(s.Detail),
	}
	if s.Limits.Idle > 0 && s.State < timeout.StateStopping && s.Hold == 0 {
		w.Near = min(float64(s.SinceBeat)/float64(s.Limits.Idle), 1)
	}
	if s.Observed != nil {
		w.WouldStop, w.WouldStopAt = s.Observed.Kind.Error()+" limit", millis(s.Observed.Elapsed)
	}
	if s.Err != nil { // even if it was abandoned and has not ended
		w.Outcome, w.Error, w.Abandoned = outcomeOf(s), textOf(s.Err), s.State == timeout.StateAbandoned
	}
	return w
}

// An ended records an execution that has ended. It holds errors and details as text, because the values may be large
// and should not be retained.
type ended struct {
	row
	marks []mark
}

func newEnded(s *timeout.Snapshot) ended {
	w := newRow(s)
	w.state, w.State, w.Outcome = timeout.StateEnded, timeout.StateEnded.String(), outcomeOf(s)
	w.Error, w.Detail = strings.Clone(w.Error), strings.Clone(w.Detail) // copies, because a string may be part of a larger one
	w.Leftovers = strings.Clone(strings.TrimSpace(texts.Short(s.Leftovers, maxLeftovers)))
	w.Stack = string(s.Stack[:min(len(s.Stack), maxStack)])
	return ended{row: w}
}
