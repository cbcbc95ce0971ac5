package jsonrpc

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Normalize returns m if it is a valid answer: its result is an object, or its error has a code and a message, and it
// does not have both. If m becomes valid without one of the two members, Normalize returns a copy without that member;
// otherwise it returns nil. Many hosts drop an invalid answer, and wait for ever.
func Normalize(m *Message) *Message {
	if m.Version != "2.0" || m.Method != "" || m.Ambiguous != nil {
		return nil
	}
	hasResult, hasError := isObject(m.Result), false
	if isObject(m.Error) {
		var e struct {
			Code    *float64
			Message *string
		}
		hasError = adapter.Unmarshal(m.Error, &e) == nil && e.Code != nil && *e.Code == math.Trunc(*e.Code) && e.Message != nil
	}
	switch {
	case hasError && m.Result == nil, hasResult && m.Error == nil:
		return m
	case hasError && !hasResult:
		return Parse(adapter.SetMember(m.Raw, nil, "result"))
	case hasResult && string(m.Error) == "null":
		return Parse(adapter.SetMember(m.Raw, nil, "error"))
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// maxShown is the number of characters after which Shorten cuts a text.
const maxShown = 300

// Shorten returns the first 300 characters of a text, with invalid UTF-8 replaced, for a log or an error.
func Shorten(text string) string {
	text, n := strings.ToValidUTF8(text, "\ufffd"), 0
	for i := range text {
		if n++; n > maxShown {
			return text[:i] + "..."
		}
	}
	return text
}
