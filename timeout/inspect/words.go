package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/internal/command"
	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// The outcomes of an execution, as the page shows them.
const (
	succeeded = "ok"
	failed    = "error"
	idle      = "idle timeout"
	total     = "total timeout"
	aborted   = "aborted"
	panicked  = "panic"

	// Of commands that were stopped for what they did, as package procgroup calls them.
	input    = "waiting for input"
	terminal = "stopped by the terminal"
	memory   = "out of memory"
	output   = "too much output"
)

var outcomes = [...]string{succeeded, failed, idle, total, aborted, panicked, input, terminal, memory, output}

// outcomeOf looks at the error itself, and not into its tree: what a function returns, or panics
// with, may be the timeout of another execution.
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

// limitOf returns the name of the limit that err reports.
func limitOf(err *timeout.Error) string {
	if err.Kind == timeout.ErrIdle {
		return "idle limit"
	}
	return "total limit"
}

// millis is a duration that JSON shows in milliseconds, to the microsecond.
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

// since is coarse, so that a page on which nothing happens does not change.
func since(from, to time.Time) string {
	d := to.Sub(from)
	if d < time.Minute {
		return "less than a minute"
	}
	return short(d.Truncate(time.Minute))
}

// oneLine removes control characters, so that a tool's text cannot look like a line of the page or
// be a command to the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}

const (
	maxText      = 500      // of a name, an error or a detail, in bytes
	maxLeftovers = 2 << 10  // of what a command has left behind, in bytes
	maxStack     = 16 << 10 // of the stack of a stopped execution, in bytes
)

// cut returns the beginning of s, in whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// errorText returns the text of an error, even of one whose method panics, as that of a nil pointer may.
func errorText(err error) string { return cut(texts.Of(err), maxText) }

// detailText renders a detail. Rendering may panic, like any String method of a program.
func detailText(detail any) (text string) {
	if detail == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			text = "(cannot be shown)"
		}
	}()
	if n, ok := detail.(float64); ok {
		return human.Number(n)
	}
	return cut(texts.Of(detail), maxText)
}
