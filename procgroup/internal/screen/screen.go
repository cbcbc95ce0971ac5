package screen

import "unicode/utf8"

// The default and the largest size of a terminal.
const (
	defaultRows, defaultCols = 24, 80
	maxRows, maxCols         = 1000, 4096
)

// A Config describes where the output was written. The zero Config is for the whole output to a pipe.
type Config struct {
	// Rows and Cols are the size of the terminal. 0 means 24 rows, or 80 columns. More than 1000 rows count as
	// 1000, and more than 4096 columns as 4096.
	Rows, Cols int
	// Terminal reports that the output has come through a terminal, which puts a carriage return before the end of
	// each line, unless the program wants none. Otherwise a line feed returns to the first column, too. A program that writes
	// to a pipe does not know how wide a terminal is, so there a carriage return goes to the beginning of a line
	// that takes more than one row.
	Terminal bool
	// Cut reports that earlier output is missing: the cursor is in the last row, and the rows above it are left out
	// until something is written there.
	Cut bool
	// Whole reports that no line is cut in the middle.
	Whole bool
}

// A Screen is a terminal. It is not safe for concurrent use.
//
// The text of a Screen has the lines that have scrolled away, and then the lines on it. A line that takes more
// than one row is one line. Lines of the alternate screen do not scroll away, and are gone when it is left. Blanks at
// the end of a line are kept as far as the line was only appended to. A line of more than 2000 characters is cut in
// the middle, unless Config.Whole is set.
type Screen struct {
	// Finished, unless it is nil, is called with each line that a line feed ends, as it then stands there. The line is
	// valid until Finished returns. It gets only the end of a line of more than 64 KiB.
	Finished func(line []byte)

	config     Config
	rows, cols int

	face
	other      *face // the normal screen, while the alternate screen is shown
	wasOther   bool
	out        []byte // lines that have scrolled away
	gone       line   // the beginning of the first line of the screen, if it has scrolled away
	going      bool   // gone holds a beginning
	before     []byte // the same beginning, for Finished and Changed
	marked     *row   // the row of the cursor at the mark
	markedAt   int    // its column
	markedText int    // the length of the row's text, unless it was drawn
	isMarked   bool
	scratch    []byte
	last       rune // the last character, which a sequence (REP) can repeat
	returned   returnState
	back       bool // the cursor goes to the first row of the line before anything else but a line feed
	parser     parser
	partial    [utf8.UTFMax]byte // the bytes of an incomplete character
	partialLen int
}

// A face holds the text of a screen, and the position of the cursor.
type face struct {
	lines       []*row // len(lines) is the number of rows
	used        int    // the last row that was reached by a character or a line feed
	top, bottom int    // the scroll region, inclusive
	cursor
	saved cursor
}

// A cursor is a position with the other state that DECSC saves.
type cursor struct {
	x, y     int // x is the number of columns if the next character begins a new row
	graphics [2]bool
	shift    int  // which of the two character sets is in use
	origin   bool // rows count from the top of the scroll region
	nowrap   bool
	insert   bool
}

// A returnState recognises what grep --color writes at the end of a line of a file with CRLF: a carriage return, the end
// of a colour, and a sequence that erases the line, right before the line feed. On a terminal the line is lost.
type returnState byte

const (
	noReturn returnState = iota
	afterReturn
	afterColour
	beforeErasure // the erasure is put off, and left out if a line feed follows
)

// New returns a blank Screen.
func New(config Config) *Screen {
	s := &Screen{config: config, rows: config.Rows, cols: config.Cols}
	if s.rows <= 0 {
		s.rows = defaultRows
	}
	if s.cols <= 0 {
		s.cols = defaultCols
	}
	s.rows, s.cols = min(s.rows, maxRows), min(s.cols, maxCols)
	s.face = s.blankFace()
	if config.Cut {
		s.y = s.rows - 1
		s.used = s.y
	}
	s.lines[s.y].known = true
	return s
}

func (s *Screen) blankFace() face {
	f := face{lines: make([]*row, s.rows), bottom: s.rows - 1}
	all := make([]row, s.rows)
	for i := range all {
		f.lines[i] = &all[i]
	}
	return f
}

// reach notes that the row of the cursor is used.
func (s *Screen) reach() { s.used = max(s.used, s.y) }

// plain writes printable ASCII characters.
func (s *Screen) plain(p []byte) {
	s.settle()
	s.last = rune(p[len(p)-1])
	if s.insert || s.nowrap || s.graphics[s.shift] {
		for _, b := range p {
			s.put(rune(b))
		}
		return
	}
	for len(p) > 0 {
		if s.x >= s.cols {
			s.wrap()
		}
		n := min(s.cols-s.x, len(p))
		r := s.lines[s.y]
		r.plain(s.x, p[:n])
		if s.x += n; s.x == s.cols {
			r.wrapped = false
		}
		s.reach()
		p = p[n:]
	}
}

// lines of the DEC special character set, from '_' to '~'.
const drawing = "\u00a0◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"

var drawings = []rune(drawing)

// put writes a character.
func (s *Screen) put(c rune) {
	s.settle()
	if s.graphics[s.shift] && c >= '_' && c <= '~' {
		c = drawings[c-'_']
	}
	w := min(width(c), s.cols)
	if w > 0 {
		s.last = c
		if s.x+w > s.cols {
			if s.nowrap {
				s.x = s.cols - w
			} else {
				s.wrap()
			}
		}
	}
	r := s.lines[s.y]
	if s.insert && w > 0 {
		r.insert(s.x, w, s.cols)
	}
	r.put(s.x, c, w)
	if s.x += w; s.x >= s.cols && w > 0 {
		r.wrapped = false
	}
	s.reach()
}

// wrap moves the cursor to the beginning of the next row, where the line goes on.
func (s *Screen) wrap() {
	s.lines[s.y].wrapped = true
	s.x = 0
	s.down()
}

// column returns the column of the cursor: the last column while the next character begins a new row.
func (s *Screen) column() int { return min(s.x, s.cols-1) }

// down moves the cursor to the next row. At the bottom of the scroll region everything moves up.
func (s *Screen) down() {
	s.x = min(s.x, s.cols-1)
	s.lines[s.y].known = true
	switch {
	case s.y == s.bottom:
		s.scrollUp(1)
	case s.y < s.rows-1:
		s.y++
	}
	s.lines[s.y].known = true
	s.reach()
}

// index moves the cursor to the next row as down does, and the line does not go on there.
func (s *Screen) index() {
	s.back = false
	if s.y == s.bottom {
		s.lines[s.y].wrapped = false
	}
	s.down()
}

// up moves the cursor up. At the top of the scroll region everything moves down.
func (s *Screen) up() {
	s.x = min(s.x, s.cols-1)
	switch {
	case s.y == s.top:
		s.scrollDown(1)
	case s.y > 0:
		s.y--
	}
}

// lineFeed ends a line.
func (s *Screen) lineFeed() {
	if s.Finished != nil {
		s.scratch = s.appendLine(s.scratch[:0], s.cols, 0)
		s.Finished(s.scratch)
	}
	if !s.config.Terminal {
		s.x = 0
	}
	s.index()
}

// carriageReturn goes to the beginning of the line.
func (s *Screen) carriageReturn() {
	s.x = 0
	s.back = !s.config.Terminal && s.other == nil
}

// settle goes to the first row of a line to whose beginning a carriage return went back. A line feed that follows ends the
// line where it ended, so it comes first.
func (s *Screen) settle() {
	if s.back {
		s.back = false
		s.y = s.begin(s.y)
	}
}

// begin returns the first row of the line that row y belongs to.
func (s *Screen) begin(y int) int {
	for y > 0 && s.lines[y-1].wrapped {
		y--
	}
	return y
}

// tab goes to the next tab stop.
func (s *Screen) tab() {
	s.settle()
	if s.nowrap {
		s.x = s.column()
	} else if s.x >= s.cols { // no character is lost at the end of a row, as it would be on a terminal
		s.wrap()
	}
	to := min(s.x-s.x%tabWidth+tabWidth, s.cols)
	if s.lines[s.y].tab(s.x, to) && !s.nowrap {
		s.x = to
	} else {
		s.x = min(to, s.cols-1)
	}
	s.reach()
}

// enter shows the alternate screen, which is blank.
func (s *Screen) enter() {
	if s.other != nil {
		return
	}
	normal := s.face
	s.other, s.wasOther = &normal, true
	s.face = s.blankFace()
	s.cursor, s.top, s.bottom = normal.cursor, normal.top, normal.bottom
	s.x, s.used = s.column(), 0
}

// leave shows the normal screen again. If the beginning of the output is missing, and the rest did not
// enter the alternate screen, the rest so far was written there.
func (s *Screen) leave() {
	switch {
	case s.other != nil:
		now := s.cursor
		s.face, s.other = *s.other, nil
		s.cursor = now
	case s.config.Cut && !s.wasOther:
		s.wasOther = true
		s.out = s.out[:0]
		s.gone.reset()
		s.going = false
		s.eraseRows(0, s.rows)
		s.x, s.y, s.used = 0, s.rows-1, s.rows-1
	}
}

// clear resets the terminal.
func (s *Screen) clear() {
	if s.other != nil {
		s.leave()
	}
	s.eraseRows(0, s.rows)
	s.top, s.bottom, s.used = 0, s.rows-1, 0
	s.cursor, s.saved = cursor{}, cursor{}
}
