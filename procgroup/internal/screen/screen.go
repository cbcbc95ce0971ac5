package screen

import (
	"cmp"
	"unicode/utf8"
)

// The default and the largest size of a terminal.
const (
	defaultRows, defaultCols = 24, 80
	maxRows, maxCols         = 1000, 4096
)

// A Config describes where the output was written. The zero Config is for output to a pipe, from its beginning.
type Config struct {
	// Rows and Cols are the size of the terminal. 0 means 24 rows, or 80 columns. More than 1000 rows count as 1000,
	// and more than 4096 columns as 4096.
	Rows, Cols int
	// Terminal means that the output has come through a terminal, which has inserted a carriage return before each line
	// feed, unless the program has turned that off. If Terminal is false, the output comes from a pipe. Then a line
	// feed also moves the cursor to the first column, and a carriage return moves it to the beginning of the line, even
	// if the line takes several rows: the program does not know how wide a terminal is.
	Terminal bool
	// Cut means that earlier output is missing. The cursor starts in the last row, and a row above it is not part of
	// the text until something is written there.
	Cut bool
	// Whole keeps lines of more than 2000 characters whole.
	Whole bool
}

// A Screen emulates a terminal. It is not safe for concurrent use.
//
// The text of a Screen has the lines that have scrolled away, and then the lines on it. A line that takes more than one
// row is one line. Lines of the alternate screen do not scroll away, and are gone when it is left. Blanks at the end of
// a row are kept if characters were only appended to the row. A line of more than 2000 characters is cut in the middle,
// unless Config.Whole is set.
type Screen struct {
	// Finished, unless it is nil, is called at each line feed with the line of the cursor. The line is valid until
	// Finished returns. Of a line of more than 64 KiB Finished gets only the end.
	Finished func(line []byte)

	config     Config
	rows, cols int

	face
	other      *face  // the normal screen, while the alternate screen is shown; otherwise nil
	wasOther   bool   // the output has entered or left the alternate screen
	out        []byte // lines that have scrolled away
	gone       line   // the beginning of the first line of the screen, if it has scrolled away
	going      bool   // gone, or the end of out, holds a beginning
	before     []byte // the same beginning, for Finished and Changed
	marked     *row   // the row of the cursor at the call of Mark; nil once the row is erased or scrolls away
	markedAt   int    // the column of the cursor at the call of Mark
	markedText int    // the length of the text of marked at the call of Mark
	isMarked   bool   // Mark was called
	scratch    []byte // reused memory
	last       rune   // the last character, which the sequence REP repeats; 0 if there is none
	returned   returnState
	back       bool // after a carriage return that settle has not completed
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

// A cursor is the position of the cursor and the other state that the sequence DECSC saves.
type cursor struct {
	x, y     int     // x is the number of columns if the next character begins a new row
	graphics [2]bool // which of the character sets G0 and G1 are the DEC special graphics
	shift    int     // the character set in use, 0 or 1
	origin   bool    // row numbers count from the top of the scroll region
	nowrap   bool    // characters at the end of a row overwrite its last column
	insert   bool    // characters push the rest of the row to the right
}

// A returnState is the progress through what grep --color writes at the end of a line of a file with CRLF: a carriage
// return, the end of a colour, a sequence that erases the line, and the line feed. A terminal would erase the whole
// line; a Screen keeps it.
type returnState byte

const (
	noReturn returnState = iota
	afterReturn
	afterColour
	beforeErasure // the erasure waits for the next byte, and is left out if that is a line feed
)

// New returns a blank Screen.
func New(config Config) *Screen {
	s := &Screen{
		config: config,
		rows:   min(cmp.Or(config.Rows, defaultRows), maxRows),
		cols:   min(cmp.Or(config.Cols, defaultCols), maxCols),
	}
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

// reach records that the row of the cursor is used.
func (s *Screen) reach() { s.used = max(s.used, s.y) }

// plain writes p, which has at least one byte and only printable ASCII characters.
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

// drawings has the characters of the DEC special graphics set for the codes '_' to '~'.
var drawings = []rune("\u00a0◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// put writes a character at the cursor.
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

// wrap moves the cursor to the beginning of the next row, which continues the line.
func (s *Screen) wrap() {
	s.lines[s.y].wrapped = true
	s.x = 0
	s.down()
}

// column returns the column of the cursor. If the next character begins a new row, that is the last column.
func (s *Screen) column() int { return min(s.x, s.cols-1) }

// down moves the cursor to the next row. At the bottom of the scroll region the region scrolls up instead.
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

// index moves the cursor to the next row as down does. If that row appears at the bottom, it begins a new line.
func (s *Screen) index() {
	s.back = false
	if s.y == s.bottom {
		s.lines[s.y].wrapped = false
	}
	s.down()
}

// up moves the cursor up. At the top of the scroll region the region scrolls down instead.
func (s *Screen) up() {
	s.x = min(s.x, s.cols-1)
	switch {
	case s.y == s.top:
		s.scrollDown(1)
	case s.y > 0:
		s.y--
	}
}

// lineFeed passes the line of the cursor to Finished and moves the cursor to the next row and, without a terminal, to
// the first column.
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

// carriageReturn moves the cursor to the first column and, without a terminal, makes settle move it to the first row of
// the line.
func (s *Screen) carriageReturn() {
	s.x = 0
	s.back = !s.config.Terminal && s.other == nil
}

// settle moves the cursor to the first row of its line, after a carriage return of a program that writes to a pipe. It
// is not part of carriageReturn: a line feed right after the carriage return ends the line in its last row.
func (s *Screen) settle() {
	if s.back {
		s.back = false
		s.y = s.begin(s.y)
	}
}

// begin returns the number of the first row of the line that row y belongs to.
func (s *Screen) begin(y int) int {
	for y > 0 && s.lines[y-1].wrapped {
		y--
	}
	return y
}

// tab moves the cursor to the next tab stop.
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

// enter switches to the alternate screen, which is blank, unless it is shown already.
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

// leave switches back to the normal screen. If Config.Cut is set and the output has not entered the alternate screen,
// the part that did is missing, and all text so far stood on the alternate screen. Then leave erases that text.
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

// clear resets the terminal. Lines that have scrolled away stay.
func (s *Screen) clear() {
	if s.other != nil {
		s.leave()
	}
	s.eraseRows(0, s.rows)
	s.top, s.bottom, s.used = 0, s.rows-1, 0
	s.cursor, s.saved = cursor{}, cursor{}
}
