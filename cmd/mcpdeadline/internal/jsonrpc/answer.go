package jsonrpc

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Normalize returns m if it is an answer that hosts understand, or a copy without the member that keeps hosts from
// understanding it. If there is no such copy, it returns nil. Many hosts drop an answer that has neither an object as its
// result nor a proper error, or has both, and wait for ever.
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

// maxShown is how many characters of a server's text are shown.
const maxShown = 300

// Shorten shortens what a server has said.
func Shorten(text string) string {
	text, n := strings.ToValidUTF8(text, "\ufffd"), 0
	for i := range text {
		if n++; n > maxShown {
			return text[:i] + "..."
		}
	}
	return text
}
