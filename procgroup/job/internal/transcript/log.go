package transcript

import (
	"bytes"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

const (
	// lookBack is how many bytes before a position are read to find out what is on the screen there.
	lookBack = 16 << 10
	// leastRing is the size with which a ring begins.
	leastRing = 4 << 10
)

// A Log holds the output of one job, the input wait of its command, and whether the job has ended.
type Log struct {
	// Input returns what the job waits for; nil means that it never waits. Set it before the first Wait. Call
	// Changed whenever its value changes.
	Input func() procgroup.InputWait
	// Ready is closed when the job says that it is ready; nil means never. Set it before the first Wait.
	Ready <-chan struct{}
	// Terminal returns the size of the job's terminal, in rows and columns, or 0 if it has none; nil means that it
	// has none. Set it before the first Wait or ReadText.
	Terminal func() (rows, cols int)

	max int

	mu      sync.Mutex
	ring    []byte    // the byte at position n is at n % len(ring)
	start   int64     // position of the first byte that is kept
	total   int64     // bytes written
	last    time.Time // of the last output, or of the beginning
	ended   bool
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// New returns a Log that keeps the last max bytes.
func New(max int) *Log { return &Log{max: max, last: time.Now()} }

// Write keeps p. It always succeeds. After End it does nothing.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || len(p) == 0 {
		return len(p), nil
	}
	l.last = time.Now()
	n := len(p)
	if skip := n - l.max; skip > 0 {
		l.total += int64(skip)
		p = p[skip:]
	}
	l.resize(min(int(l.total-l.start)+len(p), l.max))
	l.put(l.total, p)
	l.total += int64(len(p))
	l.start = max(l.start, l.total-int64(l.max))
	l.wake()
	return n, nil
}

// resize makes room for n bytes.
func (l *Log) resize(n int) {
	if n <= len(l.ring) {
		return
	}
	l.relocate(min(max(n, 2*len(l.ring), leastRing), l.max))
}

// relocate moves what is kept to a ring of n bytes.
func (l *Log) relocate(n int) {
	kept := l.bytes(l.start, l.total)
	l.ring = make([]byte, n)
	l.put(l.total-int64(len(kept)), kept)
}

func (l *Log) put(at int64, p []byte) {
	for len(p) > 0 {
		n := copy(l.ring[at%int64(len(l.ring)):], p)
		at, p = at+int64(n), p[n:]
	}
}

// bytes returns a copy of what is kept from a position to another, or the end of what is kept.
func (l *Log) bytes(from, to int64) []byte {
	from = max(from, l.start, l.total-int64(len(l.ring)))
	if from >= to {
		return nil
	}
	p := make([]byte, to-from)
	for b := p; len(b) > 0; {
		n := copy(b, l.ring[from%int64(len(l.ring)):])
		from, b = from+int64(n), b[n:]
	}
	return p
}

// Changed says that what the job waits for may have changed.
func (l *Log) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// Trim gives back memory that is not needed if nothing more is written. It returns the number of
// bytes that are kept.
func (l *Log) Trim() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.total - l.start
	if kept < int64(len(l.ring)) {
		l.relocate(int(kept))
	}
	return kept
}

// End says that the job has ended.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.wake()
}

// Ended reports whether End was called.
func (l *Log) Ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Release forgets the output. Readers are told that it was dropped.
func (l *Log) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring, l.start = nil, l.total
}

// wake wakes everybody who waits for a change.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// A Piece is a part of the output for a reader.
type Piece struct {
	Data    []byte
	Dropped int64 // bytes before Data that are no longer kept
	Next    int64 // the position after Data
	Last    bool  // nothing follows
}

// Read returns what was written after from, at most limit bytes; 0 or less means no limit.
func (l *Log) Read(from int64, limit int) Piece {
	p, _, _ := l.read(from, limit)
	return p
}

// ReadText is like Read, for output as a person would read it; limit counts the bytes that were written. The output
// is drawn on the screen that the output before from has left, and ReadText returns what has changed there.
func (l *Log) ReadText(from int64, limit int) Piece {
	p, before, cut := l.read(from, limit)
	raw := p.Data
	config := l.shown(cut)
	if !cut && len(before) == 0 && p.Last {
		p.Data = screen.Text(raw, config)
		return p
	}
	if i := bytes.IndexByte(before, '\n') + 1; cut {
		before = before[i:]
		if i == 0 && len(before) == 0 {
			raw = trimCharacter(raw)
		} else if i == 0 {
			before = trimCharacter(before)
		}
	}
	s := screen.New(config)
	s.Write(before)
	if cut || len(before) > 0 {
		s.Mark()
	}
	s.Write(raw)
	if !p.Last {
		s.Unfinished()
	}
	p.Data = s.Append(nil)
	return p
}

// trimCharacter returns b without what may be the rest of a character that was cut.
func trimCharacter(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	return b
}

// shown returns the screen on which a person would have read the output or, if cut is set, output that follows a part
// which is not known.
func (l *Log) shown(cut bool) screen.Config {
	c := screen.Config{Cut: cut, Whole: true}
	if l.Terminal != nil {
		c.Rows, c.Cols = l.Terminal()
		c.Terminal = c.Rows > 0
	}
	return c
}

// read also returns what comes before the piece, as far as that may matter, and whether there was more before that.
func (l *Log) read(from int64, limit int) (p Piece, before []byte, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = min(max(from, 0), l.total)
	begin := max(from, l.start)
	p.Next = l.total
	if limit > 0 {
		p.Next = begin + min(int64(limit), l.total-begin) // begin+limit may be too large for the type
	}
	p.Data = l.bytes(begin, p.Next)
	p.Dropped = begin - from
	p.Last = l.ended && p.Next == l.total
	before = l.bytes(begin-lookBack, begin)
	return p, before, begin > int64(len(before))
}
