package timeout

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// format implements fmt.Formatter for the errors of this package. For %+v it writes the text of err, the notes in
// brackets, without those with an empty value, and the stack. For every other verb it formats err as an error without
// a Format method, and does not call notes. For %#v it formats raw, which is err without its methods, within the
// bounds of package texts, because that calls the methods of a detail.
func format(s fmt.State, verb rune, err error, raw any, stack []byte, notes func() []note) {
	switch {
	case verb == 'v' && s.Flag('+'):
		var all []string
		for _, n := range notes() {
			if n.value != "" {
				all = append(all, n.name+n.value)
			}
		}
		text := err.Error()
		if len(all) > 0 {
			text += " [" + strings.Join(all, "; ") + "]"
		}
		if len(stack) > 0 {
			text += "\n\n" + string(stack)
		}
		_, _ = s.Write([]byte(text))
	case s.Flag('#'):
		with := fmt.FormatString(s, verb)
		_, _ = s.Write([]byte(texts.Made(func() string { return fmt.Sprintf(with, raw) })))
	default:
		fmt.Fprintf(s, fmt.FormatString(s, verb), plainError{err})
	}
}

// A note is a name and a value that %+v adds to the text of an error.
type note struct{ name, value string }

// aboutTool returns the notes of an error that has only one: the tool.
func aboutTool(name string) func() []note {
	return func() []note { return []note{{"tool ", texts.Name(name)}} }
}

// plainError hides the Format method of an error.
type plainError struct{ error }

// logText returns the log value of an error with no other fields: a group of its text and, if it is not "", the tool.
func logText(err error, tool string) slog.Value {
	attrs := []slog.Attr{slog.String("message", err.Error())}
	if tool != "" {
		attrs = append(attrs, slog.String("tool", tool))
	}
	return slog.GroupValue(attrs...)
}
