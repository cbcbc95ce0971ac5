package timeout

import (
	"fmt"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/human"
)

// format is the Format of the errors of this package: %+v has the text of err, then the
// notes in brackets, each with its value unless that is empty, and then a stack. To every
// other verb err is an error like any other; raw is err without its methods, for %#v.
func format(s fmt.State, verb rune, err error, raw any, stack []byte, notes ...note) {
	switch {
	case verb == 'v' && s.Flag('+'):
		var all []string
		for _, n := range notes {
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
		fmt.Fprintf(s, fmt.FormatString(s, verb), raw)
	default:
		fmt.Fprintf(s, fmt.FormatString(s, verb), plainError{err})
	}
}

// A note is what %+v says beside the text.
type note struct{ name, value string }

// plainError is an error without its Format.
type plainError struct{ error }

// textOf is a detail, or an error, as a person reads it: a string or an error as it is,
// a number in few digits, and anything else by its String method if it has one, as package
// progress's Update does. nil is "".
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return human.Number(v)
	}
	return fmt.Sprint(v) // which also survives a String that panics
}
