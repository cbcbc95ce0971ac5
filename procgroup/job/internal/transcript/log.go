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
	// lookBack is the number of bytes before a position from which the screen at that position is reconstructed.
	lookBack = 16 << 10
	// leastRing is the initial size of a ring in bytes.
	leastRing = 4 << 10
)

// A Log holds the output of one job, the input wait of its command, and whether the job has ended.
type Log struct {
	// Input returns the job's wait for input; if Input is nil, the job never waits. Set it before the first Wait. Call
	// Changed whenever its result changes.
	Input func() procgroup.InputWait
	// Ready is closed when the job has sent READY=1; nil means never. Set it before the first Wait.
	Ready <-chan struct{}
	// Terminal returns the size of the job's terminal, or 0, 0 if the job has none. If Terminal is nil, the job has no
	// terminal. Set it before the first Wait or ReadText.
	Terminal func() (rows, cols int)

	max int // number of bytes that are kept

	mu      sync.Mutex
	ring    []byte        // the byte at position n is at n % len(ring)
	start   int64         // position of the first byte that is kept
	total   int64         // number of bytes written
	last    time.Time     // time of the last Write, or of New
	ended   bool          // End was called
	changed chan struct{} // closed at the next change; nil if no Wait needs it
}

// New returns a Log that keeps the last max bytes.
func New(max int) *Log { return &Log{max: max, last: time.Now()} }

// Write appends p to the output. It always succeeds. After End it does nothing.
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
	if need := min(int(l.total-l.start)+len(p), l.max); need > len(l.ring) {
		l.relocate(min(max(need, 2*len(l.ring), leastRing), l.max))
	}
	l.put(l.total, p)
	l.total += int64(len(p))
	l.start = max(l.start, l.total-int64(l.max))
	l.wake()
	return n, nil
}

// relocate moves the kept bytes to a new ring of n bytes.
func (l *Log) relocate(n int) {
	kept := l.bytes(l.start, l.total)
	l.ring = make([]byte, n)
	l.put(l.total-int64(len(kept)), kept)
}

// put copies p into the ring at the position at.
func (l *Log) put(at int64, p []byte) {
	for len(p) > 0 {
		n := copy(l.ring[at%int64(len(l.ring)):], p)
		at, p = at+int64(n), p[n:]
	}
}

// bytes returns a copy of the bytes between two positions that are still kept. to is at most l.total.
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

// Changed makes each Wait call l.Input again.
func (l *Log) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// Trim releases the memory of the ring that holds no output, and returns the number of bytes that are kept. Call it
// after the last Write.
func (l *Log) Trim() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.total - l.start
	if kept < int64(len(l.ring)) {
		l.relocate(int(kept))
	}
	return kept
}

// End records that the job has ended, and wakes each Wait.
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

// Release drops the output. Later reads count it in Dropped.
func (l *Log) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring, l.start = nil, l.total
}

// wake wakes each Wait. The caller holds l.mu.
func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// A Piece is a part of the output; see job.Piece.
type Piece struct {
	Data    []byte
	Dropped int64 // number of bytes between the reader's position and Data that are no longer kept
	Next    int64 // the position after Data
	Last    bool  // the job has ended, and no output follows
}

// Read returns the output after the position from, at most limit bytes; 0 or less means no limit.
func (l *Log) Read(from int64, limit int) Piece {
	p, _, _ := l.read(from, limit)
	return p
}

// ReadText is like Read, but returns the output as a person would read it; limit counts the bytes that were written. It
// draws the output before from on a screen, then the output after from, and returns the lines that have changed.
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

// trimCharacter returns b without bytes at its start that may belong to a character whose beginning is missing.
func trimCharacter(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	return b
}

// shown returns the screen on which a person would have read the output. cut reports that earlier output is missing.
func (l *Log) shown(cut bool) screen.Config {
	c := screen.Config{Cut: cut, Whole: true}
	if l.Terminal != nil {
		c.Rows, c.Cols = l.Terminal()
		c.Terminal = c.Rows > 0
	}
	return c
}

// read implements Read. It also returns the last lookBack bytes before the piece, as far as they are kept; cut reports
// whether there was output before them.
func (l *Log) read(from int64, limit int) (p Piece, before []byte, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = min(max(from, 0), l.total)
	begin := max(from, l.start)
	p.Next = l.total
	if limit > 0 {
		p.Next = begin + min(int64(limit), l.total-begin) // begin+limit could overflow
	}
	p.Data = l.bytes(begin, p.Next)
	p.Dropped = begin - from
	p.Last = l.ended && p.Next == l.total
	before = l.bytes(begin-lookBack, begin)
	return p, before, begin > int64(len(before))
}
