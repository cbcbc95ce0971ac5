package terminal

import (
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// typeSize is the largest number of bytes that Write types before it reads the modes of the terminal again.
const typeSize = 1 << 10

// The interrupt and the end-of-file character to type if the modes of the terminal have none, as in raw mode.
const (
	interruptByte = 0x03
	endByte       = 0x04
)

// A refusal says why a byte was not typed, or that it has stopped the output.
type refusal struct {
	b           byte
	maxLine     int    // the limit, if b would make its line longer than the terminal keeps; otherwise 0
	description string // what the terminal does on b, if maxLine is 0
}

// A Typist types at a terminal. It types no byte that the terminal would drop. Interrupt and Stopped may be called
// during a Write or End.
type Typist struct {
	w       *os.File
	line    atomic.Int64 // upper bound for the length of the unfinished line in the terminal
	begun   atomic.Bool  // the last byte did not end a line
	stopped atomic.Bool  // a byte has stopped the output, and none has let it go on
	quoted  atomic.Bool  // the terminal passes on the next byte, whatever it is
	refused func(at int64, b byte, maxLine int, does string) error
}

// NewTypist returns a Typist that writes to master, this process's side of a terminal. Its methods call refused to make
// the error for a byte b, at offset at of the input, that the terminal would not pass on. If maxLine is not 0, b would
// make its line longer than maxLine bytes. Otherwise does describes what the terminal does on b. refused may be nil for a
// Typist that only interrupts.
func NewTypist(master *os.File, refused func(at int64, b byte, maxLine int, does string) error) *Typist {
	return &Typist{w: master, refused: refused}
}

func (t *Typist) refuse(at int64, r *refusal) error {
	return t.refused(at, r.b, r.maxLine, r.description)
}

// Write types p, before which the given number of bytes was typed, and returns the number of bytes typed. It stops with
// the error of refused at the first byte that would make its line too long, or on which the terminal would act. If keys
// is true, bytes on which the terminal acts are typed, too, except a byte that stops the output if no later byte of p
// lets the output go on. If keys and any are true, all of them are typed.
func (t *Typist) Write(before int64, p []byte, keys, any bool) (n int, err error) {
	for n < len(p) {
		m := modesOf(t.w) // for each chunk: the command may change them as it reads
		chunk := p[n:min(n+typeSize, len(p))]
		taken, line, refused := t.accept(&m, chunk, func(c *key, rest []byte) bool {
			if c.effect != stop || any {
				return keys
			}
			start, ok := m.find(goOn)
			return keys && ok && slices.Contains(p[n+len(chunk)-len(rest):], start)
		})
		if taken > 0 {
			k, err := t.w.Write(chunk[:taken])
			n += k
			if err != nil {
				return n, err
			}
			t.line.Store(line)
			t.begun.Store(line > 0 || !m.canonical && chunk[taken-1] != '\n' && chunk[taken-1] != '\r' && chunk[taken-1] != endByte)
		}
		if refused != nil {
			return n, t.refuse(before+int64(n), refused)
		}
	}
	return n, nil
}

// accept returns the number of bytes of p that may be typed, the length of the unfinished line after them, and the
// refusal of the next byte, if there is one. may reports whether the key c may be typed; rest is the part of p after c.
func (t *Typist) accept(m *modes, p []byte, may func(c *key, rest []byte) bool) (n int, line int64, refused *refusal) {
	line = t.line.Load()
	for i, b := range p {
		c, quoted := m.take(b), t.quoted.Load()
		if quoted {
			c = nil
		}
		switch isPassed := c == nil || c.effect == passed; {
		case c != nil && !may(c, p[i+1:]):
			return i, line, &refusal{b: b, description: c.description}
		case isPassed && (!m.canonical || !quoted && (b == '\n' || b == m.newline)):
			line = 0
		case isPassed && line >= int64(m.maxLine):
			return i, line, &refusal{b: b, maxLine: m.maxLine}
		case isPassed:
			line++
		}
		t.quoted.Store(c != nil && c.effect == quote)
		if c == nil {
			continue
		}
		switch c.effect {
		case interrupt, signal:
			if !m.keeps {
				line = 0
			}
			t.stopped.Store(false)
		case end, kill:
			line = 0
		case erase: // removes at least one byte from the line, so that line stays an upper bound
			line = max(line-1, 0)
		case stop:
			t.stopped.Store(true)
		case goOn:
			t.stopped.Store(false)
		}
	}
	return len(p), line, nil
}

// End types the end-of-file character. Within a line it types the character twice, because the first one only passes on
// the unfinished line. If the input ends with a byte that quotes the next one, the command reads the character once. If
// the input has stopped the output, End first lets it go on, because no other input will, and returns the error of
// refused for the byte that stopped it. Errors of the write are ignored.
func (t *Typist) End(typed int64) error {
	m := modesOf(t.w)
	last, ok := m.find(end)
	if !ok {
		last = endByte
	}
	var keys []byte
	if t.quoted.Swap(false) { // the terminal passes on this byte, and acts on the others
		keys = append(keys, last)
		t.begun.Store(true)
	}
	err := t.stoppedBy(&m, typed)
	if start, ok := m.find(goOn); err != nil && ok {
		keys = append(keys, start)
		t.stopped.Store(false)
	}
	if t.begun.Load() {
		keys = append(keys, last)
	}
	_, _ = t.w.Write(append(keys, last))
	return err
}

// Stopped returns the error of refused for the byte that stops the output, at offset 0, if the input has stopped the
// output, and otherwise nil.
func (t *Typist) Stopped() error {
	m := modesOf(t.w)
	return t.stoppedBy(&m, 0)
}

func (t *Typist) stoppedBy(m *modes, typed int64) error {
	if b, ok := m.find(stop); ok && t.stopped.Load() {
		return t.refuse(typed, &refusal{b: b, description: m.take(b).description})
	}
	return nil
}

// Interrupt types the interrupt character, and reports whether it was written. It returns false if the command has
// disabled that character, if the write would have to wait, or if it fails.
func (t *Typist) Interrupt() bool {
	m := modesOf(t.w)
	b, ok := m.find(interrupt)
	if !ok && m.signals {
		return false
	}
	if !ok {
		b = interruptByte // the program has turned signals off, and reads the byte as a key
	}
	if t.quoted.Swap(false) && typeNow(t.w, b) != nil || typeNow(t.w, b) != nil { // a quoted byte has no effect
		return false
	}
	if !m.keeps {
		t.line.Store(0)
		t.begun.Store(false)
	}
	t.stopped.Store(false)
	return true
}

// SetWriteDeadline sets the deadline of Write; see os.File.SetWriteDeadline.
func (t *Typist) SetWriteDeadline(at time.Time) error { return t.w.SetWriteDeadline(at) }
