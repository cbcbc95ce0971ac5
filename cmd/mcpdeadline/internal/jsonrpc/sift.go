package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// IsMessage reports whether m is a JSON-RPC message or a batch of them.
func (m *Message) IsMessage() bool {
	if m.Ambiguous != nil {
		return false
	}
	if m.Version == "2.0" {
		return m.IsRequest() || m.IsNotification() || m.IsResponse()
	}
	if line := bytes.TrimLeft(m.Raw, " \t"); len(line) == 0 || line[0] != '[' {
		return false
	}
	var batch []json.RawMessage
	if adapter.Unmarshal(m.Raw, &batch) != nil || len(batch) == 0 {
		return false
	}
	for _, item := range batch {
		if one := Parse(item); one.Version != "2.0" || !one.IsMessage() {
			return false
		}
	}
	return true
}

// ByteOrderMark may stand before a text.
var ByteOrderMark = []byte("\ufeff")

// Sift returns the message that a line of a server is or ends in, and the text before it. The message
// is nil if there is none. A server that prints without a newline glues its text to the message that
// follows, which must not be lost with it. SPEC 16.3.
func Sift(m *Message) (_ *Message, noise []byte) {
	if m.IsMessage() {
		return m, nil
	}
	line := m.Raw
	if bytes.HasPrefix(line, ByteOrderMark) {
		line = line[len(ByteOrderMark):]
		about := m.About
		if m = Parse(line); m.IsMessage() {
			m.About = about
			return m, nil
		}
		m.About = about
	}
	if bytes.Contains(line, []byte(`"jsonrpc"`)) {
		// A line of nested objects without an end would take time that grows with the square of its
		// length, so the search has a budget.
		budget := 4*len(line) + 1<<16
		for at := bytes.IndexByte(line, '{'); at >= 0 && budget > 0; {
			var object map[string]json.RawMessage
			err := json.Unmarshal(line[at:], &object)
			if err == nil {
				if glued := Parse(line[at:]); glued.IsMessage() && !glued.isEcho() {
					glued.About = m.About
					return glued, line[:at]
				}
				break // what is within a whole object belongs to that
			}
			budget--
			if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
				budget -= int(bad.Offset)
			}
			next := bytes.IndexByte(line[at+1:], '{')
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	return nil, line
}

// isEcho reports whether a message is one that only hosts send. A server that logs to stdout what it has
// received must not ask the host for it.
func (m *Message) isEcho() bool {
	area, _, _ := strings.Cut(m.Method, "/")
	switch area {
	case "initialize", "tools", "resources", "prompts", "completion", "logging", "server":
		return true
	}
	return m.Method == "notifications/initialized"
}

// Items returns the messages of a batch, or nil if m is not a batch.
func (m *Message) Items() (items []json.RawMessage) {
	if m.Method != "" || m.ID != nil || !bytes.HasPrefix(bytes.TrimSpace(m.Raw), []byte{'['}) {
		return nil
	}
	_ = adapter.Unmarshal(m.Raw, &items)
	return items
}
