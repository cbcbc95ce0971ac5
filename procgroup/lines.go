package procgroup

import (
	"bytes"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// maxLine is the number of bytes of a line that Lines keeps.
const maxLine = 64 << 10

// Lines returns a callback for the Each of [Capture] that calls fn with each line of the output. A line ends with "\n",
// "\r\n", or "\r", which progress displays use to overwrite themselves. The end of a stream also ends a line, unless
// the line is empty. fn gets the line without its end, and no more than the first 64 KiB of it; stderr reports whether
// the line is from stderr.
//
// Each stream has its own lines; with one pipe and in a [Terminal], all lines count as stdout. If part of a line was
// skipped because fn was too slow, the line is omitted.
//
// To make lines heartbeats that carry a detail, call heartbeat.BeatWith in fn. Use the callback for one command only.
// Lines panics with a [*timeout.ConfigError] if fn is nil.
func Lines(fn func(line string, stderr bool)) func(Chunk) {
	if fn == nil {
		panic(&timeout.ConfigError{Key: "fn", Value: "nil", Accepted: "one that is not nil"})
	}
	var stdout, stderr lineBuffer
	return func(c Chunk) {
		b := &stdout
		if c.Stderr {
			b = &stderr
		}
		if c.Skipped > 0 {
			*b = lineBuffer{line: b.line[:0], missed: true}
		}
		for data := c.Data; len(data) > 0; {
			i := bytes.IndexAny(data, "\r\n")
			if i < 0 {
				b.add(data)
				break
			}
			end := data[i]
			if i == 0 && end == '\n' && b.afterCR {
				b.afterCR = false // the second half of "\r\n"
				data = data[1:]
				continue
			}
			b.add(data[:i])
			if line, whole := b.end(); whole {
				fn(line, c.Stderr)
			}
			b.afterCR = end == '\r'
			data = data[i+1:]
		}
		if c.Last {
			if line, whole := b.end(); whole && line != "" {
				fn(line, c.Stderr)
			}
		}
	}
}

// A lineBuffer is the unfinished line of a stream.
type lineBuffer struct {
	line    []byte
	missed  bool // its beginning was skipped
	afterCR bool // the previous line ended with "\r", and this one is empty so far
}

func (b *lineBuffer) add(p []byte) {
	if len(p) > 0 {
		b.afterCR = false
	}
	p = p[:min(len(p), maxLine+1-len(b.line))]
	b.line = append(b.line, p...)
}

// end returns the line, cut to maxLine bytes, and begins the next one. whole is false if a part of the line was
// skipped.
func (b *lineBuffer) end() (line string, whole bool) {
	if len(b.line) > maxLine {
		cut := b.line[:maxLine]
		b.line = cut[:maxLine-kept.Unfinished(cut)]
	}
	line, whole = string(b.line), !b.missed
	b.line, b.missed = b.line[:0], false
	return line, whole
}
