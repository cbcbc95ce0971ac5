package procgroup

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

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

// message returns the message of SPEC 6.8: its wording is the same for every limit, whether the command's own or an
// enclosing one.
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
		if stop.Cause != nil && limit > 0 { // the rest of the caller's deadline: SPEC 3.3
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

// millis formats d in milliseconds, as the shortest decimal number. A float64 is exact to the
// nanosecond up to 104 days.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64)
}

// ranOut returns the message of a command that ran out of memory, at its own limit or at an enclosing one, which
// may be that of the machine.
func (p *Process) ranOut(atLimit bool) string {
	name := timeout.FromContext(p.running).Snapshot().Tool
	if atLimit && p.inForce.Memory > 0 {
		return fmt.Sprintf("%s ran out of memory (%s).", name, byteCount(p.inForce.Memory))
	}
	return name + " ran out of memory."
}
