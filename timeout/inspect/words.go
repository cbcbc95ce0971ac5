package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The outcomes of an execution, in the page's words.
const (
	succeeded = "ok"
	failed    = "error"
	idle      = "idle timeout"
	total     = "total timeout"
	aborted   = "aborted"
	panicked  = "panic"

	// The outcomes of commands that were stopped for their behaviour, in the words of package procgroup.
	input    = "waiting for input"
	terminal = "stopped by the terminal"
	memory   = "out of memory"
	output   = "too much output"
)

var outcomes = [...]string{succeeded, failed, idle, total, aborted, panicked, input, terminal, memory, output}

// outcomeOf returns the outcome of an execution. It checks the error itself and not what the error wraps, because a
// function may return, or panic with, the timeout of another execution.
func outcomeOf(s *timeout.Snapshot) string {
	if s.Err == nil {
		return succeeded
	}
	if s.Returned {
		return failed
	}
	switch err := s.Err.(type) {
	case *timeout.Error:
		switch err.Kind {
		case timeout.ErrIdle:
			return idle
		case timeout.ErrTotal:
			return total
		case timeout.ErrAborted:
			return aborted
		}
	case *timeout.PanicError:
		return panicked
	case command.Stop:
		if reason := err.CommandStop(); slices.Contains(outcomes[:], reason) {
			return reason
		}
	}
	return failed
}

// A millis is a duration that marshals to JSON as a number of milliseconds, to the microsecond.
type millis time.Duration

func (m millis) String() string { return short(time.Duration(m)) }

func (m millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Duration(m).Microseconds())/1000, 'f', -1, 64), nil
}

// short formats a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + short(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// since returns the time between two instants, in whole minutes or as "less than a minute", so that while nothing
// happens, a page changes at most once a minute.
func since(from, to time.Time) string {
	d := to.Sub(from)
	if d < time.Minute {
		return "less than a minute"
	}
	return short(d.Truncate(time.Minute))
}

const (
	maxText      = 500      // the maximum for a name, an error or a detail, in bytes
	maxLeftovers = 2 << 10  // the maximum for the leftovers of a command, in bytes
	maxStack     = 16 << 10 // the maximum for the stack of an ended execution, in bytes
)

// textOf returns the text of an error or a detail, within the bounds of package texts.
func textOf(v any) string { return texts.Short(texts.Of(v), maxText) }

// name returns the name of a tool as the page shows it.
func name(tool string) string { return cmp.Or(tool, "(no name)") }
