package capture

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

// modes are what a terminal does to input at a moment.
type modes struct {
	canonical bool // it keeps lines, of at most maxLine bytes and their end
	maxLine   int
	keys      []key
	strips    bool // it clears the eighth bit
	signals   bool // it makes signals of some bytes
	newline   byte // ends a line as '\n' does; 0 if no other byte does
}

// A key is a byte that a terminal takes for itself.
type key struct {
	b      byte
	does   string
	effect effect
}

type effect uint8

const (
	other     effect = iota
	interrupt        // makes a signal, discards the unfinished line, and lets stopped output go on
	signal           // makes another signal, with the same effects on the line and the output
	end              // ends the input, or passes on the unfinished line
	kill             // erases the unfinished line
	erase            // erases the last character or word of the line
	stop             // stops the output
	goOn             // lets stopped output go on
)

// A refusal is input that a terminal would not pass on.
type refusal struct {
	at      int // number of bytes before it
	b       byte
	maxLine int    // the length of a line, if the line would be longer; otherwise 0
	does    string // what the terminal does with b, if maxLine is 0
}

func (r *refusal) Error() string {
	if r.maxLine > 0 {
		return fmt.Sprintf("the terminal keeps at most %d bytes of a line", r.maxLine)
	}
	return fmt.Sprintf("the terminal does not pass on the byte %#02x: %s", r.b, r.does)
}

// take returns what the terminal does with b, or nil if it passes b on.
func (m *modes) take(b byte) *key {
	if b >= 0x80 && m.strips {
		return &key{b: b, does: "it clears the eighth bit"}
	}
	if i := slices.IndexFunc(m.keys, func(k key) bool { return k.b == b }); i >= 0 {
		return &m.keys[i]
	}
	return nil
}

// find returns the byte that has an effect.
func (m *modes) find(e effect) (b byte, ok bool) {
	if i := slices.IndexFunc(m.keys, func(k key) bool { return k.effect == e }); i >= 0 {
		return m.keys[i].b, true
	}
	return 0, false
}

// A typist types at a terminal. Nothing that the terminal would drop is typed.
type typist struct {
	w       *os.File
	line    atomic.Int64 // bytes of the unfinished line that the terminal keeps
	begun   atomic.Bool  // the last byte did not end a line
	stopped atomic.Bool  // the output was stopped
	refused func(at int64, b byte, maxLine int, does string) error
}

// wrapped returns err or, if err is a refusal, the caller's error for it. before is how many bytes were typed before
// the write that was refused.
func (t *typist) wrapped(err error, before int64) error {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return t.refused(before+int64(r.at), r.b, r.maxLine, r.does)
	}
	return err
}

// write types p. It returns a refusal at the first byte that the terminal would take for itself, or of which the line
// would be too long. With keys, bytes that the terminal takes for itself are typed, too, but one that stops the
// output is refused if no later byte of p lets the output go on. With any, even that one is typed.
func (t *typist) write(p []byte, keys, any bool) (n int, err error) {
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
func (t *typist) accept(m *modes, p []byte, may func(c *key, rest []byte) bool) (n int, line int64, refused *refusal) {
	line = t.line.Load()
	for i, b := range p {
		c := m.take(b)
		switch {
		case c != nil && !may(c, p[i+1:]):
			return i, line, &refusal{b: b, does: c.does}
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

// end types the end of the input, twice within a line: there the first one only passes on the unfinished line. If the
// input has stopped the output, end first lets it go on, because nothing else ever would, and returns a refusal of the
// byte that stopped it.
func (t *typist) end() error {
	m := modesOf(t.w)
	last, ok := m.find(end)
	if !ok {
		last = endByte
	}
	var keys []byte
	err := t.stop(&m)
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

// stop returns a refusal if the input has stopped the output.
func (t *typist) stop(m *modes) error {
	if b, ok := m.find(stop); ok && t.stopped.Load() {
		return &refusal{b: b, does: m.take(b).does}
	}
	return nil
}

// interrupt types the byte that interrupts, or reports false if the terminal has none, or takes nothing now.
func (t *typist) interrupt() bool {
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

// A Keyboard is the standard input of a command that this program writes to: the command gets R, or, if it has a
// terminal, what is written is typed there. W is the other end of R, and its end is the end of the input.
type Keyboard struct {
	R, W   *os.File
	typist *typist // nil if the command has no terminal
	size   func() Size
}

// Read is there so that a Keyboard can be the Stdin of an exec.Cmd. It is not called.
func (k *Keyboard) Read(p []byte) (int, error) { return k.R.Read(p) }

// Write writes p. If keys is set, bytes that the terminal takes for itself are typed.
func (k *Keyboard) Write(p []byte, keys bool) (int, error) {
	if k.typist == nil {
		return k.W.Write(p)
	}
	n, err := k.typist.write(p, keys, false)
	return n, k.typist.wrapped(err, 0)
}

// SetWriteDeadline sets the deadline of Write; see os.File.SetWriteDeadline.
func (k *Keyboard) SetWriteDeadline(t time.Time) error {
	if k.typist == nil {
		return k.W.SetWriteDeadline(t)
	}
	return k.typist.w.SetWriteDeadline(t)
}

// Size returns the size of the terminal, or 0 if there is none.
func (k *Keyboard) Size() (rows, cols int) {
	if k.size == nil {
		return 0, 0
	}
	size := k.size()
	return int(size.Rows), int(size.Cols)
}
