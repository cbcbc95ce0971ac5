package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// maxNoise bounds what is shown of a line of a server that is no message.
const maxNoise = 4 << 10

// noiseMark begins each line on stderr that the server has sent and that is no message.
const noiseMark = "mcpdeadline: no message from the server: "

// isMessage reports whether m is a JSON-RPC message or a batch of them.
func (m *message) isMessage() bool {
	if m.twofold != nil {
		return false
	}
	if m.Version == "2.0" {
		return m.isRequest() || m.isNotification() || m.isResponse()
	}
	if line := bytes.TrimLeft(m.raw, " \t"); len(line) == 0 || line[0] != '[' {
		return false
	}
	var batch []json.RawMessage
	if adapter.Unmarshal(m.raw, &batch) != nil || len(batch) == 0 {
		return false
	}
	for _, item := range batch {
		if one := readMessage(item); one.Version != "2.0" || !one.isMessage() {
			return false
		}
	}
	return true
}

var byteOrderMark = []byte("\ufeff")

// sift returns the message that a line of a server is or ends in, and the text before it. The message
// is nil if there is none. A server that prints without a newline glues its text to the message that
// follows, which must not be lost with it. SPEC 16.3.
func sift(m *message) (_ *message, noise []byte) {
	if m.isMessage() {
		return m, nil
	}
	line := m.raw
	if bytes.HasPrefix(line, byteOrderMark) {
		line = line[len(byteOrderMark):]
		about := m.about
		if m = readMessage(line); m.isMessage() {
			m.about = about
			return m, nil
		}
		m.about = about
	}
	if bytes.Contains(line, []byte(`"jsonrpc"`)) {
		// A line of nested objects without an end would take time that grows with the square of its
		// length, so the search has a budget.
		budget := 4*len(line) + 1<<16
		for at := bytes.IndexByte(line, '{'); at >= 0 && budget > 0; {
			var object map[string]json.RawMessage
			err := json.Unmarshal(line[at:], &object)
			if err == nil {
				if glued := readMessage(line[at:]); glued.isMessage() && !glued.isEcho() {
					glued.about = m.about
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
func (m *message) isEcho() bool {
	area, _, _ := strings.Cut(m.Method, "/")
	switch area {
	case "initialize", "tools", "resources", "prompts", "completion", "logging", "server":
		return true
	}
	return m.Method == "notifications/initialized"
}

// noise writes a text that is no message to stderr, and advises once what to do about it. It counts as
// output on stderr.
func (s *session) noise(text []byte) {
	shown := text
	if len(text) > maxNoise {
		shown = append(bytes.ToValidUTF8(text[:maxNoise:maxNoise], nil), "..."...)
	}
	fmt.Fprintf(s.stderr, "%s%s\n", noiseMark, shown)
	s.advised.Do(func() {
		s.logger.Warn("the server sends what is no message, and many hosts would end the session then; it should print to stderr", "bytes", len(text))
	})
	if s.alive.stderr {
		s.sign(nil)
	}
}
