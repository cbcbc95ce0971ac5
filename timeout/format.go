package timeout

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/human"
	"github.com/tooldeadline/tooldeadline/internal/texts"
)

// format implements Format for the errors of this package. For %+v it writes the text of err, then
// the notes in brackets, without those that have an empty value, and then the stack. For every other verb
// it formats err as any error, and does not call notes. raw is err without its methods, for %#v, which calls
// those of a detail.
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

// A note is a name and a value that %+v adds to the text.
type note struct{ name, value string }

// aboutTool returns the only note of most errors: the tool.
func aboutTool(name string) func() []note {
	return func() []note { return []note{{"tool ", name}} }
}

// plainError is an error without its Format.
type plainError struct{ error }

// textOf returns the text of a detail, an error or the value of a panic: a string or an error as it is,
// a number in few digits, and anything else by its String method if it has one, as package
// progress's Update does. That of nil is "". The methods are the caller's code (SPEC 3.25).
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return human.Number(v)
	case *Error:
		if v != nil {
			return v.Error()
		}
	case *PanicError:
		if v != nil {
			return v.Error()
		}
	}
	return texts.Part(v)
}

// A shown is an error in a record: as a group where it is one of ours, and otherwise as its text.
type shown struct{ err error }

func errorAttr(err error) slog.Attr {
	if err == nil {
		return slog.Any("error", nil)
	}
	return slog.Any("error", shown{err})
}

func (s shown) LogValue() slog.Value {
	switch err := s.err.(type) {
	case *Error:
		return err.LogValue()
	case *PanicError:
		return err.LogValue()
	case *goexitError:
		return err.LogValue()
	}
	return slog.StringValue(textOf(s.err))
}
