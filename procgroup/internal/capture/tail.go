package capture

import (
	"bytes"
	"strings"

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
