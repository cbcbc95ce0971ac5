package timeout

import (
	"log/slog"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// LogValue returns a group of the message, the kind, the exit code, the limit, the main figures without the stack,
// and the texts of Err and Cause. Times are rounded to a millisecond or, below 100 ms, to three digits.
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("message", e.Error()),
		slog.String("kind", e.Kind.Error()),
		slog.Int("exit_code", e.ExitCode()),
		slog.Duration("limit", human.Duration(e.Limit)), // may be the time left until the caller's deadline
		slog.Duration("elapsed", human.Duration(e.Elapsed)),
		slog.Duration("since_beat", human.Duration(e.SinceBeat)),
		slog.Duration("longest_gap", human.Duration(e.LongestGap)),
		slog.Uint64("beats", e.Beats),
		slog.Bool("abandoned", e.Abandoned),
	}
	if e.Needed > 0 {
		attrs = append(attrs, slog.Duration("needed", human.Duration(e.Needed)))
	}
	if e.Stalls > 0 {
		attrs = append(attrs, slog.Int("stalls", e.Stalls))
	}
	if e.Detail != nil {
		attrs = append(attrs, slog.String("last", textOf(e.Detail)))
	}
	if e.Tool != "" {
		attrs = append(attrs, slog.String("tool", e.Tool))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", textOf(e.Err)))
	}
	if e.Cause != nil {
		attrs = append(attrs, slog.String("cause", textOf(e.Cause)))
	}
	return slog.GroupValue(attrs...)
}

// LogValue returns a group of the text and, if there is one, the tool.
func (e *PanicError) LogValue() slog.Value { return logText(e, e.Tool) }

// LogValue returns a group of the text and, if there is one, the tool.
func (e *goexitError) LogValue() slog.Value { return logText(e, e.Tool) }

// A shown is an error in a log record. Its value is a group for the errors of this package, and otherwise the error's
// text.
type shown struct{ err error }

func errorAttr(err error) slog.Attr {
	if err == nil {
		return slog.Any("error", nil)
	}
	return slog.Any("error", shown{err})
}

func (s shown) LogValue() slog.Value {
	switch err := s.err.(type) {
	case *Error, *PanicError, *goexitError:
		return err.(slog.LogValuer).LogValue()
	}
	return slog.StringValue(textOf(s.err))
}
