package procgroup

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// reason returns the Reason for stop, the error of the execution, and Exited for nil.
func reason(stop *timeout.Error) Reason {
	switch {
	case stop == nil:
		return Exited
	case stop.Kind == timeout.ErrIdle:
		return IdleTimeout
	case stop.Kind == timeout.ErrTotal:
		return TotalTimeout
	case stopOf(stop) != nil:
		return stopOf(stop).reason
	}
	return Aborted
}

// message returns Result.Message, whose wording SPEC 6.8 sets, or "" if stop is nil. The wording is the same for a
// limit of the command and for a limit of an enclosing execution.
func (p *Process) message(stop *timeout.Error) string {
	switch reason(stop) {
	case IdleTimeout:
		signs := "output."
		if p.activity.isSet() {
			signs = "output or work."
		}
		return stop.Tool + " process timed out after " + millis(stop.Limit) + "ms without " + signs
	case TotalTimeout:
		limit := stop.Limit
		if stop.Cause != nil && limit > 0 { // the caller's deadline has expired: limit is the time that it left; SPEC 3.3
			limit = max(limit.Round(time.Millisecond), time.Millisecond)
		}
		return stop.Tool + " process timed out after " + millis(limit) + "ms."
	case Aborted:
		return stop.Tool + " process was aborted."
	case WaitingForInput:
		return stop.Tool + " " + p.input.now().String()
	case StoppedByTerminal:
		return stop.Tool + " was stopped by the terminal."
	case TooMuchOutput:
		return fmt.Sprintf("%s wrote more than %d bytes.", stop.Tool, p.capture.Limit)
	}
	return ""
}

// millis formats d in milliseconds, as the shortest decimal number. A float64 is exact to the nanosecond up to 104
// days.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// ranOut returns the message of a command that ran out of memory. atLimit reports whether the command reached its own
// limit; otherwise an enclosing control group or the machine had no more memory.
func (p *Process) ranOut(atLimit bool) string {
	name := timeout.FromContext(p.running).Snapshot().Tool
	if atLimit && p.inForce.Memory > 0 {
		return fmt.Sprintf("%s ran out of memory (%s).", name, byteCount(p.inForce.Memory))
	}
	return name + " ran out of memory."
}
