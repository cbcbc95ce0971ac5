package timeout

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// A State says what an execution is doing.
type State int

const (
	// StateRunning: the function is running, and none of the states below applies.
	StateRunning State = iota + 1
	// StateNearIdle: at least 80 % of the idle limit has passed without a heartbeat.
	StateNearIdle
	// StateHeld: the idle check is held; see heartbeat.Hold.
	StateHeld
	// StateStalled: the process could not run for a time (see [Run]), and no heartbeat has come
	// since.
	StateStalled
	// StateStopping: a limit has fired, or the execution was aborted, and the function has
	// not returned yet. A command of package procgroup is in this state from its end, however
	// it came about, until its processes are gone and Finished has returned.
	StateStopping
	// StateAbandoned: the function has not returned within the grace.
	StateAbandoned
	// StateEnded: the function has returned or, for a command, Wait is about to return.
	StateEnded
)

var states = [...]string{"", "running", "near idle", "held", "stalled", "stopping", "abandoned", "ended"}

// String returns "running", "near idle", "held", "stalled", "stopping", "abandoned" or
// "ended".
func (s State) String() string {
	if s > 0 && int(s) < len(states) {
		return states[s]
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// A Snapshot is the state of an execution when [Execution.Snapshot] or a hook is called. In the
// hooks Exceeded, Abandoned and Finished it is the state when the execution was stopped or, if it
// was not stopped, when the function returned.
type Snapshot struct {
	ID     uint64 // the number of the execution; see Execution.ID
	Parent uint64 // the ID of the enclosing execution, or 0
	State  State
	Figures

	Start   time.Time     // on the execution's clock
	Closing bool          // whether the execution is closing; see the function Closing
	Hold    time.Duration // how long the present hold of the idle check has lasted, or 0
	Held    time.Duration // the time for which the idle check has been held so far, Hold included
	Stalled time.Duration // how long the process could not run in all, as far as the idle limit noticed

	// ObserveOnly reports whether the limits are only observed; see WithObserveOnly. Observed is
	// the Error of the first limit that would have stopped the execution, or nil if none would
	// have.
	ObserveOnly bool
	Observed    *Error

	// Err is the outcome as Run returns it, or holds a *PanicError if Run panics. It is nil as
	// long as there is no outcome.
	Err error
	// Leftovers says which processes of a command of package procgroup were killed at its end or
	// are still running; see procgroup.Result.Leftovers. It is "" for anything else, and until the
	// command has ended.
	Leftovers string
	// Returned reports whether Err is what the function returned, or how a command ended by itself.
	// An *Error, a *PanicError or an ErrGoexit in Err is then about another execution, for example
	// one that the function ran. If Returned is false, Err itself is one of these and is about this
	// execution, or it is the error of a command of package procgroup that was stopped for what it
	// did.
	Returned bool
}

// LogValue returns everything but the stack as a group, rounded as in [Error.LogValue].
func (s Snapshot) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("tool", s.Tool),
		slog.Uint64("id", s.ID),
		slog.String("state", s.State.String()),
		slog.Duration("total", human.Duration(s.Limits.Total)),
		slog.Duration("idle", human.Duration(s.Limits.Idle)),
		slog.Duration("elapsed", human.Duration(s.Elapsed)),
		slog.Duration("since_beat", human.Duration(s.SinceBeat)),
		slog.Duration("longest_gap", human.Duration(s.LongestGap)),
		slog.Uint64("beats", s.Beats),
		errorAttr(s.Err),
	}
	if s.Operation != OperationTool {
		attrs = append(attrs, slog.String("operation", s.Operation.String()))
	}
	if s.Detail != nil {
		attrs = append(attrs, slog.String("last", textOf(s.Detail)))
	}
	if s.Stalls > 0 {
		attrs = append(attrs, slog.Int("stalls", s.Stalls))
	}
	if s.Closing {
		attrs = append(attrs, slog.Bool("closing", true))
	}
	if s.Held > 0 {
		attrs = append(attrs, slog.Duration("held", human.Duration(s.Held)))
	}
	if s.Observed != nil {
		attrs = append(attrs, slog.Any("observed", s.Observed))
	}
	return slog.GroupValue(attrs...)
}
