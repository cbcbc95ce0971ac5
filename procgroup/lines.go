package procgroup

import (
	"bytes"
	"context"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
)

// MaxLine is how many bytes of a line [Lines] keeps. The rest of a longer one is dropped.
const MaxLine = 64 << 10

// Lines makes a callback for [WithOutput] of one that gets whole lines. A line ends with
// "\n", "\r\n" or, as progress that overwrites itself does, "\r"; fn gets it without. What
// a stream ends with, unless it is empty, is a line too. The two streams do not mix. A
// line of which the callback has missed a part, because it is slow, is left out.
//
// The callback must be used for one command only.
func Lines(fn func(s Stream, line string)) func(Chunk) {
	var streams [2]lineBuffer
	return func(c Chunk) {
		b := &streams[c.Stream]
		if c.Skipped > 0 {
			b.torn()
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
				fn(c.Stream, line)
			}
			b.afterCR = end == '\r'
			data = data[i+1:]
		}
		if c.Last {
			if line, whole := b.end(); whole && line != "" {
				fn(c.Stream, line)
			}
		}
	}
}

// Progress makes a callback for [WithOutput] that passes what parse makes of each line on
// to [heartbeat.BeatWith], where parse does not give nil. So a tool that prints its
// progress reports it to whoever listens to the execution of ctx.
//
//	procgroup.WithOutput(procgroup.Progress(ctx, func(_ procgroup.Stream, line string) any {
//		if percent, ok := strings.CutSuffix(line, "%"); ok {
//			return percent
//		}
//		return nil
//	}))
//
// The callback must be used for one command only.
func Progress(ctx context.Context, parse func(s Stream, line string) any) func(Chunk) {
	return Lines(func(s Stream, line string) {
		if detail := parse(s, line); detail != nil {
			heartbeat.BeatWith(ctx, detail)
		}
	})
}

// A lineBuffer is the line of a stream that has not ended yet.
type lineBuffer struct {
	line    []byte
	missed  bool // its beginning is not known
	afterCR bool // the line before ended with "\r", and this one has nothing yet
}

func (b *lineBuffer) add(p []byte) {
	if len(p) > 0 {
		b.afterCR = false
	}
	p = p[:min(len(p), MaxLine+1-len(b.line))]
	b.line = append(b.line, p...)
}

// end returns the line and begins the next.
func (b *lineBuffer) end() (line string, whole bool) {
	if len(b.line) > MaxLine {
		cut := b.line[:MaxLine]
		b.line = cut[:MaxLine-capture.Unfinished(cut)]
	}
	line, whole = string(b.line), !b.missed
	b.line, b.missed = b.line[:0], false
	return line, whole
}

func (b *lineBuffer) torn() {
	b.line, b.missed, b.afterCR = b.line[:0], true, false
}
