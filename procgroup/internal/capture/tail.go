package capture

import (
	"bytes"
	"strings"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// While a command runs, Prompt and Line draw the screen from the last maxTail bytes of a stream, or up to twice as
// many. The lines that they return have at most maxLineRunes characters.
const (
	maxTail      = 4 << 10
	maxLineRunes = 160
)

// lastBytes returns the last bytes of tail followed by data, in the memory of tail. It keeps at least maxTail bytes, if
// there are as many, and at most 2*maxTail, so that it rarely has to move the bytes.
func lastBytes(tail, data []byte) []byte {
	if len(data) >= maxTail {
		return append(tail[:0], data[len(data)-maxTail:]...)
	}
	if len(tail)+len(data) > 2*maxTail {
		tail = tail[:copy(tail, tail[len(tail)+len(data)-maxTail:])]
	}
	return append(tail, data...)
}

// shownLast returns a screen to which tail, the end of the output, has been written. cut means that other output came
// before tail. Then the part of a line at the start of a tail of at least maxTail bytes is left out.
func shownLast(tail []byte, cut bool, config screen.Config) *screen.Screen {
	config.Cut = cut
	if cut && len(tail) >= maxTail {
		tail = tail[bytes.IndexByte(tail, '\n')+1:]
	}
	s := screen.New(config)
	s.Write(tail)
	return s
}

// short returns the last maxLineRunes characters of a line, with a space for each tab and without spaces around them.
func short(line []byte) string {
	out := []rune(strings.ReplaceAll(string(line), "\t", " "))
	return strings.TrimSpace(string(out[max(len(out)-maxLineRunes, 0):]))
}
