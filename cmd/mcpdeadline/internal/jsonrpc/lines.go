package jsonrpc

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// MaxMessage is the largest size of a message, in bytes, so that a line without an end does not exhaust memory.
const MaxMessage = 64 << 20

// The numbers of bytes of a line beyond the limit that are kept, to find the id of the message; see [IDOf].
const (
	HeadKept = 4 << 10 // from the beginning
	TailKept = 256     // from the end
)

// A Splitter is an io.Writer that splits its input into lines, and drops blank lines.
type Splitter struct {
	Max  int          // the longest line, in bytes
	Line func([]byte) // called for each line; may keep its argument
	// Long is called for each line of more than Max bytes, with its beginning, its end and its length.
	Long func(head, tail []byte, length int)

	buf        []byte
	skipped    int // length so far of a line of more than Max bytes; otherwise 0
	head, tail []byte
}

func (s *Splitter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		piece, after, whole := bytes.Cut(rest, []byte{'\n'})
		if s.add(piece); whole {
			s.end()
		}
		rest = after
	}
	return len(p), nil
}

// Flush handles the rest of the input, which has no newline, as a line.
func (s *Splitter) Flush() {
	if len(s.buf) > 0 || s.skipped > 0 {
		s.end()
	}
}

func (s *Splitter) add(p []byte) {
	if s.skipped == 0 && len(s.buf)+len(p) <= s.Max {
		s.buf = append(s.buf, p...)
		return
	}
	if s.skipped == 0 {
		s.skipped, s.head, s.tail = len(s.buf), bytes.Clone(s.buf[:min(len(s.buf), HeadKept)]), bytes.Clone(LastOf(s.buf, TailKept))
		s.buf = nil
	}
	s.head = append(s.head, p[:min(len(p), HeadKept-len(s.head))]...)
	s.skipped += len(p)
	s.tail = bytes.Clone(LastOf(append(s.tail, LastOf(p, TailKept)...), TailKept))
}

// LastOf returns the last n bytes of p, or all of p if it is shorter.
func LastOf(p []byte, n int) []byte { return p[max(len(p)-n, 0):] }

func (s *Splitter) end() {
	switch line := bytes.TrimRight(s.buf, "\r"); {
	case s.skipped > 0:
		s.Long(s.head, s.tail, s.skipped)
		s.skipped, s.head, s.tail = 0, nil, nil
	case len(bytes.TrimSpace(line)) == 0:
		s.buf = s.buf[:0]
		return
	default:
		// A carriage return is white space in JSON. A peer that treats it as the end of a line, as Python does for text
		// files, would read the rest as another message, which the proxy has not checked.
		OneLine(line)
		s.Line(line)
	}
	s.buf = nil // Line may keep the slice
}

// OneLine replaces line feeds and carriage returns in a JSON document, where they are white space, by spaces.
func OneLine(data []byte) {
	for i, c := range data {
		if c == '\n' || c == '\r' {
			data[i] = ' '
		}
	}
}

var idAtEnd = regexp.MustCompile(`"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*\}\s*$`)

// IDOf returns the id of an answer of which only the head and the tail are available: SDKs write the id either before
// or after the result. It returns nil if it finds none.
func IDOf(head, tail []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err == nil && t == json.Delim('{') {
		for d.More() {
			key, err := d.Token()
			if err != nil {
				break
			}
			var value json.RawMessage
			if d.Decode(&value) != nil {
				break
			}
			if key == "id" {
				return value
			}
		}
	}
	if found := idAtEnd.FindSubmatch(tail); found != nil && json.Valid(found[1]) {
		return bytes.Clone(found[1])
	}
	return nil
}
