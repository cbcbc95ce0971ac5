package capture

import (
	"bytes"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// maxTail is the least number of last bytes of a stream that are kept, while the command runs, to draw the screen from.
// maxLineRunes is how many characters a line of the screen has at most when it is returned.
const (
	maxTail      = 4 << 10
	maxLineRunes = 160
)

// lastBytes returns the last bytes of tail and data, in the memory of tail: at least maxTail, if there are so many, and
// at most twice as many, so that they are moved once in a while only.
func lastBytes(tail, data []byte) []byte {
	if len(data) >= maxTail {
		return append(tail[:0], data[len(data)-maxTail:]...)
	}
	if len(tail)+len(data) > 2*maxTail {
		tail = tail[:copy(tail, tail[len(tail)+len(data)-maxTail:])]
	}
	return append(tail, data...)
}

// A Mark is a place in the output: the end of what there was when [Capture.Prompt] returned it.
type Mark struct {
	stream *stream
	total  int64
}

// Prompt returns the line in which the cursor stands, up to the cursor, as a person would read it, without the output
// before answered. The prompt is "" if nothing stands before the cursor. since is the time of the last output, and end
// is the place where it ends.
func (c *Capture) Prompt(answered Mark) (prompt string, since time.Time, end Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.newest
	if s == nil {
		return "", c.last, Mark{}
	}
	total := int64(len(s.head)) + s.ring.total
	tail, cut := s.tail, total > int64(len(s.tail))
	if s == answered.stream {
		tail = tail[len(tail)-int(min(total-answered.total, int64(len(tail)))):]
		cut = answered.total > 0
	}
	return short(shownLast(tail, cut, c.shown()).Line()), c.last, Mark{s, total}
}

// shownLast returns the screen after the last output. If tail is cut, the rest of its first line is not shown.
func shownLast(tail []byte, cut bool, config screen.Config) *screen.Screen {
	config.Cut = cut
	if cut && len(tail) >= maxTail {
		tail = tail[bytes.IndexByte(tail, '\n')+1:]
	}
	s := screen.New(config)
	s.Write(tail)
	return s
}

// short returns a line without the spaces around it and with a space for each tab. A long line loses its beginning.
func short(line []byte) string {
	out := []rune(strings.ReplaceAll(string(line), "\t", " "))
	return strings.TrimSpace(string(out[max(len(out)-maxLineRunes, 0):]))
}
