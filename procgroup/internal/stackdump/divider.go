// Package stackdump separates the stacks that programs write on a signal from the rest of their output.
package stackdump

import "bytes"

// The first lines of stack dumps. A line with the time may precede that of a JVM. A first line need not be at the
// beginning of a line, since the program may have left its last line unfinished. A terminal inserts a carriage return
// before each line feed.
var (
	goHeaders    = [][]byte{[]byte("SIGQUIT: quit\nPC="), []byte("SIGQUIT: quit\r\nPC=")}
	pythonHeader = []byte("Fatal Python error: Aborted")
	javaHeader   = []byte("Full thread dump ")
	javaTime     = "2000-01-01 00:00:00\r\n"

	// A JVM ends its dump with the state of its heap and an empty line.
	javaHeap = []byte("\nHeap")
	javaEnds = [][]byte{[]byte("\n\n"), []byte("\n\r\n")}
)

// holdBack is the largest number of bytes that a Divider holds back, because they may be the beginning of a header, or
// of the time before it.
var holdBack = len(javaTime) + len(javaHeader)

// A Divider separates the stack dumps on a stream from the output. The zero Divider is at the beginning of a stream, in
// output. It is not safe for concurrent use.
type Divider struct {
	at   place
	held []byte // the bytes that Add has held back
}

// A place is what the stream has at the position of a Divider.
type place int

const (
	inOutput place = iota
	inStacks       // a dump of Go or Python, which has no recognisable end
	inJava         // a dump of a JVM
	inHeap         // the end of a dump of a JVM, from its heap on
)

// Add takes the next bytes of the stream. It returns the output and the stacks among these bytes and those that earlier
// calls have held back. It may hold back bytes at the end.
func (d *Divider) Add(data []byte) (output, stacks []byte) {
	all := append(d.held, data...)
	for {
		n, next := d.scan(all)
		if d.at == inOutput {
			output = append(output, all[:n]...)
		} else {
			stacks = append(stacks, all[:n]...)
		}
		all = all[n:]
		if next == d.at {
			d.held = bytes.Clone(all)
			return output, stacks
		}
		d.at = next
	}
}

// scan returns how many bytes at the beginning of all certainly belong to the place d.at, and the place of the byte
// after them. If that is d.at again, the rest has to be held back.
func (d *Divider) scan(all []byte) (n int, next place) {
	if d.at == inStacks {
		return len(all), inStacks
	}
	others := index(all, goHeaders[0], goHeaders[1], pythonHeader) // these dumps may begin within that of a JVM
	switch d.at {
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
	return max(len(all)-holdBack, 0), d.at
}

// index returns the first position in all at which one of texts begins, or len(all) if there is none.
func index(all []byte, texts ...[]byte) int {
	at := len(all)
	for _, text := range texts {
		if i := bytes.Index(all, text); i >= 0 {
			at = min(at, i)
		}
	}
	return at
}

// javaTimeBefore returns the length of a line with the time at the end of b, or 0 if b ends otherwise.
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

// End returns the bytes that were held back, either as output or as stacks. d no longer holds them: a second End
// returns nothing.
func (d *Divider) End() (output, stacks []byte) {
	held := d.held
	d.held = nil
	if d.at == inOutput {
		return held, nil
	}
	return nil, held
}
