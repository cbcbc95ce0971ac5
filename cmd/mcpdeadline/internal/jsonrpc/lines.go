package jsonrpc

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// MaxMessage bounds a message, so that a line without an end does not fill the memory of the proxy.
const MaxMessage = 64 << 20

// How many bytes of a line that is too long are kept, to find its id.
const (
	HeadKept = 4 << 10
	TailKept = 256
)

// A Splitter is a writer that splits its input into lines. Empty lines are dropped.
type Splitter struct {
	Max  int
	Line func([]byte) // keeps its argument
	// Long is called for each line of more than Max bytes, with its beginning, its end and its length.
	Long func(head, tail []byte, length int)

	buf        []byte
	skipped    int // length so far of a line that is too long; otherwise 0
	head, tail []byte
}

func (s *Splitter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		piece := rest
		if i >= 0 {
			piece = rest[:i]
			rest = rest[i+1:]
		} else {
			rest = nil
		}
		s.add(piece)
		if i >= 0 {
			s.end()
		}
	}
	return len(p), nil
}

// Flush ends a last line that has no newline.
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

// LastOf returns the last n bytes of p, or all of them.
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
		// In JSON it is a space. For programs that take it for the end of a line, as text files in Python do, what
		// follows would be another message, which nobody has looked at.
		OneLine(line)
		s.Line(line)
	}
	s.buf = nil // kept by Line
}

// OneLine changes a JSON document to one of a single line: what ends a line is white space there.
func OneLine(data []byte) {
	for _, end := range []byte{'\n', '\r'} {
		for rest := data; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

var idAtEnd = regexp.MustCompile(`"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*\}\s*$`)

// IDOf finds the id of an answer from its beginning and its end, since SDKs write the id either before
// or after the result. It returns nil if there is none.
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
