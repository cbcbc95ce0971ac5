package capture

import (
	"bytes"
	"strings"
	"time"
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

// plain returns a line as a person would read it, without the spaces around it and with a space for each tab. It is ""
// after a carriage return, which takes the line back. A long line loses its beginning.
func plain(line []byte) string {
	var c Cleaner
	c.Append(nil, line)
	if c.returned {
		return ""
	}
	out := []rune(strings.ReplaceAll(string(c.End(nil)), "\t", " "))
	return strings.TrimSpace(string(out[max(len(out)-maxPromptRunes, 0):]))
}
