package capture

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// maxPrompt is how many bytes of the last line a prompt is taken from, and maxPromptRunes how many characters it has.
const (
	maxPrompt      = 512
	maxPromptRunes = 160
)

// lastBytes returns the last maxPrompt bytes of tail and data, in the memory of tail.
func lastBytes(tail, data []byte) []byte {
	if len(data) >= maxPrompt {
		return append(tail[:0], data[len(data)-maxPrompt:]...)
	}
	if drop := len(tail) + len(data) - maxPrompt; drop > 0 {
		tail = tail[:copy(tail, tail[drop:])]
	}
	return append(tail, data...)
}

// A Mark is a place in the output: the end of what there was when [Capture.Prompt] returned it.
type Mark struct {
	stream *stream
	total  int64
}

// Prompt returns the unfinished last line of the output, as a person would read it, without what was there at answered,
// and since when there has been no output. The prompt is "" if the last line is finished.
func (c *Capture) Prompt(answered Mark) (prompt string, since time.Time, end Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.newest
	if s == nil {
		return "", c.last, Mark{}
	}
	tail := s.tail
	if s == answered.stream {
		tail = tail[len(tail)-int(min(s.ring.total-answered.total, int64(len(tail)))):]
	}
	return plain(tail[bytes.LastIndexByte(tail, '\n')+1:]), c.last, Mark{s, s.ring.total}
}

// plain returns a line without escape sequences and control characters, and without what a carriage return or a
// backspace takes back. Invalid UTF-8 becomes U+FFFD. A long line loses its beginning.
func plain(line []byte) string {
	var out []rune
	for len(line) > 0 {
		if n := escape(line); n > 0 {
			line = line[n:]
			continue
		}
		r, n := utf8.DecodeRune(line)
		line = line[n:]
		switch {
		case r == '\r':
			out = out[:0]
		case r == '\b':
			out = out[:max(len(out)-1, 0)]
		case r == '\t':
			out = append(out, ' ')
		case r >= ' ' && r != 0x7f && (r < 0x80 || r >= 0xa0):
			out = append(out, r)
		}
	}
	return string(bytes.TrimSpace([]byte(string(out[max(len(out)-maxPromptRunes, 0):]))))
}

// escape returns the length of the escape sequence at the beginning of line, as ECMA-48 has them, or 0.
func escape(line []byte) int {
	if line[0] != 0x1b {
		return 0
	}
	if len(line) == 1 {
		return 1
	}
	switch line[1] {
	case '[': // parameters, then a letter
		for i := 2; i < len(line); i++ {
			if line[i] >= 0x40 && line[i] <= 0x7e {
				return i + 1
			}
		}
		return len(line)
	case ']', 'P', '^', '_', 'X': // a string, up to BEL or ESC \
		for i := 2; i < len(line); i++ {
			if line[i] == 0x07 {
				return i + 1
			}
			if line[i] == 0x1b && i+1 < len(line) && line[i+1] == '\\' {
				return i + 2
			}
		}
		return len(line)
	}
	n := 1
	for n < len(line) && line[n] >= 0x20 && line[n] <= 0x2f { // intermediate characters
		n++
	}
	return min(n+1, len(line))
}
