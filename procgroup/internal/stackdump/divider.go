// Package stackdump tells the stacks that programs write, when they are asked to, from the rest of what they write.
package stackdump

import "bytes"

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

// A Divider separates the stacks on a stream from the output.
type Divider struct {
	at   place
	held []byte // the last bytes, which may be the beginning of a header
}

// A place is the position of a divider in the structure of a stream.
type place int

const (
	inOutput place = iota
	inStacks       // of Go or Python, which do not end
	inJava         // in the stacks of a JVM
	inHeap         // in what a JVM shows last
)

// Add takes the next bytes of the stream. It returns which of them, and of those held back before, are output, and
// which are stacks.
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

// scan returns how many bytes of all certainly belong to the place where the divider is, and the place of the next
// byte.
func (d *Divider) scan(all []byte) (n int, next place) {
	if d.at == inStacks {
		return len(all), inStacks
	}
	others := index(all, goHeaders[0], goHeaders[1], pythonHeader) // may begin within the stacks of a JVM
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

// index returns the position of the first of some texts, or len(all) if there is none.
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

// End returns what was held back.
func (d *Divider) End() (output, stacks []byte) {
	if d.at == inOutput {
		return d.held, nil
	}
	return nil, d.held
}
