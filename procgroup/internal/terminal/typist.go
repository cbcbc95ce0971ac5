package terminal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// typeSize is how many bytes are typed before the modes of the terminal are read again.
const typeSize = 1 << 10

// The bytes that interrupt and that end the input, unless the terminal has others.
const (
	interruptByte = 0x03
	endByte       = 0x04
)

// A refusal is input that a terminal would not pass on.
type refusal struct {
	at          int // number of bytes before it
	b           byte
	maxLine     int    // the length of a line, if the line would be longer; otherwise 0
	description string // what the terminal does with b, if maxLine is 0
}

func (r *refusal) Error() string {
	if r.maxLine > 0 {
		return fmt.Sprintf("the terminal keeps at most %d bytes of a line", r.maxLine)
	}
	return fmt.Sprintf("the terminal does not pass on the byte %#02x: %s", r.b, r.description)
}

// A Typist types at a terminal. Nothing that the terminal would drop is typed.
type Typist struct {
	w       *os.File
	line    atomic.Int64 // bytes of the unfinished line that the terminal keeps
	begun   atomic.Bool  // the last byte did not end a line
	stopped atomic.Bool  // the output was stopped
	refused func(at int64, b byte, maxLine int, does string) error
}

// NewTypist returns a Typist for master, this process's side of a terminal. refused makes the error for a byte of
// the input that comes after at others and is not passed on: because the line would be longer than maxLine bytes,
// or, if maxLine is 0, because the terminal does with it what does says.
func NewTypist(master *os.File, refused func(at int64, b byte, maxLine int, does string) error) *Typist {
	return &Typist{w: master, refused: refused}
}

// Wrapped returns err or, if err is a refusal, the caller's error for it. before is how many bytes were typed before
// the write that was refused.
func (t *Typist) Wrapped(err error, before int64) error {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return t.refused(before+int64(r.at), r.b, r.maxLine, r.description)
	}
	return err
}

// Write types p. It returns a refusal at the first byte that the terminal would take for itself, or with which the
// line would be too long. With keys, bytes that the terminal takes for itself are typed, too, but one that stops
// the output is refused if no later byte of p lets the output go on. With any, even that one is typed.
func (t *Typist) Write(p []byte, keys, any bool) (n int, err error) {
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
			refused.at = n
			return n, refused
		}
	}
	return n, nil
}

// accept returns how many bytes of p may be typed, and how long the unfinished line is after them. may reports
// whether c, which the terminal takes for itself and which rest follows, may be typed.
func (t *Typist) accept(m *modes, p []byte, may func(c *key, rest []byte) bool) (n int, line int64, refused *refusal) {
	line = t.line.Load()
	for i, b := range p {
		c := m.take(b)
		switch {
		case c != nil && !may(c, p[i+1:]):
			return i, line, &refusal{b: b, description: c.description}
		case c != nil:
			switch c.effect {
			case interrupt, signal:
				line = 0
				t.stopped.Store(false)
			case end, kill:
				line = 0
			case erase: // at least one byte: the line may be shorter than it is taken for, and never longer
				line = max(line-1, 0)
			case stop:
				t.stopped.Store(true)
			case goOn:
				t.stopped.Store(false)
			}
		case !m.canonical || b == '\n' || b == m.newline:
			line = 0
		case line >= int64(m.maxLine):
			return i, line, &refusal{b: b, maxLine: m.maxLine}
		default:
			line++
		}
	}
	return len(p), line, nil
}

// End types the end of the input, twice within a line: there the first one only passes on the unfinished line. If the
// input has stopped the output, End first lets it go on, because nothing else ever would, and returns a refusal of the
// byte that stopped it.
func (t *Typist) End() error {
	m := modesOf(t.w)
	last, ok := m.find(end)
	if !ok {
		last = endByte
	}
	var keys []byte
	err := t.stoppedBy(&m)
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

// Stopped returns a refusal if the input has stopped the output.
func (t *Typist) Stopped() error {
	m := modesOf(t.w)
	return t.stoppedBy(&m)
}

func (t *Typist) stoppedBy(m *modes) error {
	if b, ok := m.find(stop); ok && t.stopped.Load() {
		return &refusal{b: b, description: m.take(b).description}
	}
	return nil
}

// Interrupt types the byte that interrupts, or reports false if the terminal has none, or takes nothing now.
func (t *Typist) Interrupt() bool {
	m := modesOf(t.w)
	b, ok := m.find(interrupt)
	if !ok && m.signals {
		return false
	}
	if !ok {
		b = interruptByte // a key for a program that reads keys
	}
	if typeNow(t.w, b) != nil {
		return false
	}
	t.line.Store(0)
	t.begun.Store(false)
	t.stopped.Store(false)
	return true
}

// SetWriteDeadline sets the deadline of Write; see os.File.SetWriteDeadline.
func (t *Typist) SetWriteDeadline(at time.Time) error { return t.w.SetWriteDeadline(at) }
