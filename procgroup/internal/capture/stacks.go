package capture

import (
	"bytes"
	"time"
)

// maxStacks is how many bytes of stacks are kept.
const maxStacks = 256 << 10

// stacks has the stacks that programs have written so far. Capture.mu guards it.
type stacks struct {
	kept         [2][]byte // by stream
	total, lines int64
}

// BeginStacks begins to separate from the output the stacks that programs write when they are asked to; see EndStacks.
// It is called once, before the programs are asked.
//
// A stack is recognised by its first line, and not by the time alone: what a program has written before, and what
// others write on the same stream before it begins, is output. From there on all is stacks until EndStacks, because
// neither Go's nor Python's have an end that could be relied on, and other lines may be in between: those of go test,
// for example, which passes on what the test has written. Only a JVM, which goes on, ends its own.
func (c *Capture) BeginStacks() {
	c.mu.Lock()
	c.stacks = new(stacks)
	c.mu.Unlock()
	for i := range c.streams {
		s := &c.streams[i]
		s.passing.Lock()
		s.divider = new(divider)
		s.passing.Unlock()
	}
}

// EndStacks waits until all streams have ended, but not beyond until. What is written later is output.
func (c *Capture) EndStacks(until time.Time) {
	wait(c.done, until)
	c.rest()
	for i := range c.streams {
		s := &c.streams[i]
		s.passing.Lock()
		c.giveBack(s, nil)
		s.divider = nil
		s.passing.Unlock()
	}
}

// Stacks returns the stacks that were kept, those of the first stream first. Call it after Finish.
func (c *Capture) Stacks() Kept {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil || c.stacks.total == 0 {
		return Kept{}
	}
	all := bytes.Join(c.stacks.kept[:], nil)
	return keep(c.stacks.total, c.stacks.lines, all, nil, maxStacks)
}

// divide passes on the output in a chunk, and keeps the stacks in it. If there is no output, no sink gets the chunk,
// and divide itself sends sunk the values that the collector waits for.
func (c *Capture) divide(s *stream, buf *buffer, n int, sunk chan<- struct{}) {
	if n == 0 {
		c.giveBack(s, nil)
		c.pass(s, buf, 0, sunk)
		return
	}
	output, stacks := s.divider.add(buf[:n])
	if len(stacks) > 0 {
		c.keepStacks(s, stacks)
	}
	if len(output) > 0 {
		c.passBytes(s, output, sunk)
		return
	}
	if sunk != nil {
		for range c.sinksOf(s) {
			sunk <- struct{}{} // there is room for them
		}
	}
}

// giveBack passes on what the divider has held back.
func (c *Capture) giveBack(s *stream, sunk chan<- struct{}) {
	if s.divider == nil {
		return
	}
	output, stacks := s.divider.end()
	if len(stacks) > 0 {
		c.keepStacks(s, stacks)
	}
	if len(output) > 0 {
		c.passBytes(s, output, sunk)
	}
}

// passBytes passes on output that is in no buffer, in as many chunks as it takes. sunk gets its values after the last.
func (c *Capture) passBytes(s *stream, output []byte, sunk chan<- struct{}) {
	for len(output) > 0 {
		buf := buffers.Get().(*buffer)
		n := copy(buf[:], output)
		output = output[n:]
		var last chan<- struct{}
		if len(output) == 0 {
			last = sunk
		}
		if !c.pass(s, buf, n, last) {
			buffers.Put(buf)
		}
	}
}

func (c *Capture) keepStacks(s *stream, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.stacks
	k.total += int64(len(text))
	k.lines += countLines(text)
	room := maxStacks - len(k.kept[0]) - len(k.kept[1])
	k.kept[s.id] = append(k.kept[s.id], text[:min(room, len(text))]...)
}

// The first lines of stacks. That of a JVM follows a line with the time. A program may have left its last line
// unfinished, and a terminal puts a carriage return before each line end.
var (
	goHeaders    = [][]byte{[]byte("SIGQUIT: quit\nPC="), []byte("SIGQUIT: quit\r\nPC=")}
	pythonHeader = []byte("Fatal Python error: Aborted")
	javaHeader   = []byte("Full thread dump ")
	javaTime     = "2000-01-01 00:00:00\r\n"

	// A JVM shows its heap at the end, and then an empty line.
	javaHeap = []byte("\nHeap")
	javaEnds = [][]byte{[]byte("\n\n"), []byte("\n\r\n")}
)

// holdBack is how many bytes may have to be held back because they may be the beginning of a header, or of its time.
var holdBack = len(javaTime) + len(javaHeader)

// A divider separates the stacks on a stream from the output.
type divider struct {
	is   place
	held []byte // the last bytes, which may be the beginning of a header
}

// A place is where in a stream a divider is.
type place int

const (
	inOutput place = iota
	inStacks       // of Go or Python, which do not end
	inJava         // in the stacks of a JVM
	inHeap         // in what a JVM shows last
)

// add takes the next bytes of the stream. It returns which of them, and of those held back before, are output, and
// which are stacks.
func (d *divider) add(data []byte) (output, stacks []byte) {
	all := append(d.held, data...)
	for {
		n, next := d.scan(all)
		if d.is == inOutput {
			output = append(output, all[:n]...)
		} else {
			stacks = append(stacks, all[:n]...)
		}
		all = all[n:]
		if next == d.is {
			d.held = bytes.Clone(all)
			return output, stacks
		}
		d.is = next
	}
}

// scan returns how many bytes of all certainly belong to the place where the divider is, and the place of the next
// byte.
func (d *divider) scan(all []byte) (n int, next place) {
	if d.is == inStacks {
		return len(all), inStacks
	}
	others := index(all, goHeaders[0], goHeaders[1], pythonHeader) // may begin within the stacks of a JVM
	switch d.is {
	case inOutput:
		if at := index(all, javaHeader); at < others {
			return at - javaTimeBefore(all[:at]), inJava
		}
	case inJava:
		if at := index(all, javaHeap); at < others {
			return at, inHeap
		}
	case inHeap:
		if at := index(all, javaEnds...); at < others {
			return at + bytes.IndexByte(all[at+1:], '\n') + 2, inOutput
		}
	}
	if others < len(all) {
		return others, inStacks
	}
	return max(len(all)-holdBack, 0), d.is
}

// index returns where the first of some texts is, or len(all).
func index(all []byte, texts ...[]byte) int {
	at := len(all)
	for _, text := range texts {
		if i := bytes.Index(all, text); i >= 0 {
			at = min(at, i)
		}
	}
	return at
}

// javaTimeBefore returns the length of the line with the time at the end of b.
func javaTimeBefore(b []byte) int {
	for _, end := range []string{"\n", "\r\n"} {
		pattern := javaTime[:len(javaTime)-2] + end
		if len(b) < len(pattern) {
			continue
		}
		matches := true
		for i, c := range b[len(b)-len(pattern):] {
			digit := c >= '0' && c <= '9'
			matches = matches && (c == pattern[i] || digit && pattern[i] >= '0' && pattern[i] <= '9')
		}
		if matches {
			return len(pattern)
		}
	}
	return 0
}

// end returns what was held back.
func (d *divider) end() (output, stacks []byte) {
	if d.is == inOutput {
		return d.held, nil
	}
	return nil, d.held
}
