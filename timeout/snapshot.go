package timeout

import (
	"log/slog"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// A State is the phase that an execution is in.
type State int

const (
	// StateRunning means that the function is running, and that none of the states below applies.
	StateRunning State = iota + 1
	// StateNearIdle means that at least 80 % of the idle limit has passed without a heartbeat.
	StateNearIdle
	// StateHeld means that the idle check is suspended; see heartbeat.Hold.
	StateHeld
	// StateStalled means that the process could not run for a time, and that no heartbeat has come since. The package
	// documentation describes stalls under Time.
	StateStalled
	// StateStopping means that a limit has fired, or the execution was aborted, and that the function has not
	// returned yet. A command of package procgroup is in this state from its end, whatever ended it, until its
	// processes are gone and Finished has returned.
	StateStopping
	// StateAbandoned means that the function did not return within the grace and is still running.
	StateAbandoned
	// StateEnded means that the function has returned or, for a command of package procgroup, that its Wait has
	// returned or is about to.
	StateEnded
)

// String returns "running", "near idle", "held", "stalled", "stopping", "abandoned" or "ended", and for an invalid
// State its number, as in "State(0)".
func (s State) String() string {
	return word("State", int(s), "", "running", "near idle", "held", "stalled", "stopping", "abandoned", "ended")
}

// A Snapshot is the state of an execution at the call of [Execution.Snapshot], or at the event that a hook reports.
// In the hooks Abandoned and Finished it is the state when the execution was stopped or, if it was not stopped, when
// the function returned.
type Snapshot struct {
	ID     uint64 // the number of the execution; see Execution.ID
	Parent uint64 // the ID of the enclosing execution, or 0
	State  State
	Figures

	Start   time.Time     // on the execution's clock
	Closing bool          // whether the execution is closing; see the function Closing
	Hold    time.Duration // the time for which the present hold of the idle check has lasted, or 0
	Held    time.Duration // the time for which the idle check has been held so far, Hold included
	Stalled time.Duration // the total time of the stalls of the process that the idle check has found

	// ObserveOnly reports whether the limits are only observed; see WithObserveOnly. Observed is the Error of the
	// first limit that would have stopped the execution, or nil if none would have.
	ObserveOnly bool
	Observed    *Error

	// Err is the error that Run returns, or a *PanicError if Run panics. It is nil before the outcome and after a
	// success. In the hooks Exceeded and Returned, Err is what [Hooks] says.
	Err error
	// Leftovers describes the processes of a command of package procgroup that were killed at its end or are still
	// running; see procgroup.Result.Leftovers. It is "" before the command has ended, and for other executions.
	Leftovers string
	// Returned reports whether Err is the error that the function returned, nil included, or describes how a command
	// ended by itself. An *Error, a *PanicError or an ErrGoexit in Err is then about another execution, for example a
	// nested one. If Returned is false, Err is nil, or is one of these errors about this execution, or says that a
	// command of package procgroup was stopped for its behaviour.
	Returned bool
}

// LogValue returns a group of the main fields, without the stack, rounded as in [Error.LogValue].
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
