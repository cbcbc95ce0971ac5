package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// IsMessage reports whether m is a JSON-RPC 2.0 message, or a batch of one or more of them, and neither m nor a message
// of the batch is ambiguous.
func (m *Message) IsMessage() bool {
	if m.Ambiguous != nil {
		return false
	}
	if m.Version == "2.0" {
		return m.IsRequest() || m.IsNotification() || m.IsResponse()
	}
	items := m.Items()
	return len(items) > 0 && !slices.ContainsFunc(items, func(item json.RawMessage) bool {
		one := Parse(item)
		return one.Version != "2.0" || !one.IsMessage()
	})
}

// ByteOrderMark is the UTF-8 byte order mark, which some programs write at the beginning of a text.
var ByteOrderMark = []byte("\ufeff")

// Sift returns the message at the end of a line of a server, and the text before it, which is noise. A server that
// prints a text without a newline appends the next message to that text, and a server whose threads write at the same
// time may write several messages on one line, which Sift returns as a batch. If the line ends in no message, Sift
// returns nil and the line. It replaces invalid UTF-8, at which some hosts end the session. SPEC 16.3.
func Sift(m *Message) (_ *Message, noise []byte) {
	about := m.About
	if m, noise = sift(m); m == nil {
		return nil, noise
	}
	if !utf8.Valid(m.Raw) {
		m = Parse(bytes.Map(func(r rune) rune { return r }, m.Raw)) // replaces each byte, as encoding/json does in ids
	}
	m.About = about
	return m, noise
}

func sift(m *Message) (_ *Message, noise []byte) {
	if m.IsMessage() {
		return m, nil
	}
	line := m.Raw
	if bytes.HasPrefix(line, ByteOrderMark) {
		line = line[len(ByteOrderMark):]
		if m = Parse(line); m.IsMessage() {
			return m, nil
		}
	}
	if bytes.Contains(line, []byte(`"jsonrpc"`)) {
		// On deeply nested objects that are not closed, the search takes time quadratic in the length of the line. The
		// budget, in bytes read, bounds that time.
		budget := 4*len(line) + 1<<16
		for at := bytes.IndexByte(line, '{'); at >= 0 && budget > 0; {
			var object map[string]json.RawMessage
			err := json.Unmarshal(line[at:], &object)
			if err == nil {
				if glued := Parse(line[at:]); glued.IsMessage() && !glued.isEcho() {
					return glued, line[:at]
				}
				break // objects inside a complete object are not messages
			}
			budget--
			if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
				end := int(bad.Offset) - 1
				if budget -= end + 1; end > 0 && line[at+end] == '{' && bytes.HasSuffix(bytes.TrimSpace(line[at:at+end]), []byte("}")) {
					all, read := series(line[at:])
					if all != nil {
						return all, line[:at]
					}
					budget -= read
				}
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

// series returns a batch of the messages in a text that consists of messages only, or nil for any other text. read is
// the number of bytes of the text that it has read.
func series(text []byte) (_ *Message, read int) {
	var items [][]byte
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var item json.RawMessage
		switch err := d.Decode(&item); {
		case err == io.EOF:
			return Parse(slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))), len(text)
		case err != nil:
			return nil, int(d.InputOffset())
		}
		if one := Parse(item); item[0] != '{' || !one.IsMessage() || one.isEcho() {
			return nil, int(d.InputOffset())
		}
		items = append(items, item)
	}
}

// isEcho reports whether only hosts send messages with the method of m. Such a message on the server's stdout is a log
// of received messages, and must not be forwarded to the host.
func (m *Message) isEcho() bool {
	area, _, _ := strings.Cut(m.Method, "/")
	switch area {
	case "initialize", "tools", "resources", "prompts", "completion", "logging", "server":
		return true
	}
	return m.Method == "notifications/initialized"
}

// Items returns the messages of a batch, or nil if m is not a batch or is malformed. It returns an empty slice for an
// empty batch.
func (m *Message) Items() (items []json.RawMessage) {
	if m.Method != "" || m.ID != nil || !bytes.HasPrefix(bytes.TrimSpace(m.Raw), []byte{'['}) {
		return nil
	}
	_ = adapter.Unmarshal(m.Raw, &items)
	return items
}
