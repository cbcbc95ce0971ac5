package screen

import "unicode/utf8"

// maxLine is how many bytes of a line Finished gets at most.
const maxLine = 64 << 10

// The size of a terminal, unless it is given, and the largest that is shown.
const (
	defaultRows, defaultCols = 24, 80
	maxRows, maxCols         = 1000, 4096
)

// A Config says on what the output is written. The zero Config is that of output to a pipe, all of it.
type Config struct {
	// Rows and Cols are the size of the terminal. 0 means 24 rows, or 80 columns. More than 1000 rows count as
	// 1000, and more than 4096 columns as 4096.
	Rows, Cols int
	// Terminal reports that the output has come through a terminal, which puts a carriage return before the end of
	// each line, unless the program wants none. Otherwise a line feed returns to the first column, too. What writes
	// to a pipe does not know how wide a terminal is, so there a carriage return goes to the beginning of a line
	// that takes more than one row.
	Terminal bool
	// Cut reports that there was output before, which is not known: the cursor is in the last row, and what stands
	// above it is left out until something is written there.
	Cut bool
	// Whole reports that no line is cut in the middle.
	Whole bool
}

// A Screen is a terminal. It is not safe for concurrent use.
//
// The text of a Screen has the lines that have scrolled away, and then those that stand on it. A line that takes more
// than one row is one line. Lines of the alternate screen do not scroll away, and are gone when it is left. Blanks at
// the end of a line are kept as far as the line was only appended to. A line of more than 2000 characters is cut in
// the middle, unless Config.Whole is set.
type Screen struct {
	// Finished, unless it is nil, is called with each line that a line feed ends, as it then stands there. The line is
	// valid until Finished returns. Of a line of more than 64 KiB it gets the end.
	Finished func(line []byte)

	config     Config
	rows, cols int

	face
	other      *face // the normal screen, while this is the alternate one
	wasOther   bool
	out        []byte // lines that have scrolled away
	gone       line   // the beginning of the first line of the screen, if it has scrolled away
	going      bool   // there is such a beginning
	before     []byte // the same for Finished and Changed
	marked     *row   // where the cursor was at the mark
	markedAt   int    // column
	markedText int    // length of its text, unless it was drawn
	isMarked   bool
	scratch    []byte
	last       rune // the last character, which a sequence (REP) can repeat
	returned   returnState
	back       bool // the cursor goes to the first row of the line before anything else but a line feed
	parser     parser
	partial    [utf8.UTFMax]byte // of a character
	partialLen int
}

// A face is what stands on a screen, and where the cursor is.
type face struct {
	lines       []*row // len(lines) is the number of rows
	used        int    // the last row that was reached by a character or a line feed
	top, bottom int    // of the scroll region, inclusive
	cursor
	saved cursor
}

// A cursor is a position with what DECSC saves beside it.
type cursor struct {
	x, y     int // x is the number of columns after the last one was written to: the next character begins a new row
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

// reach notes that something is in the row of the cursor.
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

// column returns the column of the cursor, which is the last one while the next character begins a new row.
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

// index is down where the line does not go on.
func (s *Screen) index() {
	s.back = false
	if s.y == s.bottom {
		s.lines[s.y].wrapped = false
	}
	s.down()
}

// up is the opposite of down.
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

// scrollUp moves the rows of the scroll region up by n. Rows of the whole screen scroll away.
func (s *Screen) scrollUp(n int) {
	n = min(n, s.bottom-s.top+1)
	for i := range n {
		r := s.lines[s.top+i]
		if s.top == 0 && s.other == nil && i <= s.used {
			s.away(r)
		}
		s.forget(r)
		r.reset()
	}
	if s.top > 0 {
		s.parted(s.top)
	}
	s.rotate(s.top, s.bottom, n)
	if s.top == 0 && s.bottom == s.rows-1 {
		s.used = max(s.used-n, 0)
	}
}

// scrollDown moves the rows of the scroll region down by n, and blanks the n rows at its top.
func (s *Screen) scrollDown(n int) { s.insertRows(s.top, n) }

// insertRows inserts n blank rows at row y of the scroll region.
func (s *Screen) insertRows(y, n int) {
	n = min(n, s.bottom-y+1)
	for i := range n {
		r := s.lines[s.bottom-i]
		s.forget(r)
		r.reset()
		r.known = true
	}
	s.parted(y)
	s.rotate(y, s.bottom, -n)
	s.lines[s.bottom].wrapped = false
	s.used = max(s.used, min(s.used+n, s.bottom))
}

// deleteRows removes n rows at row y of the scroll region.
func (s *Screen) deleteRows(y, n int) {
	n = min(n, s.bottom-y+1)
	s.lines[s.bottom].wrapped = false
	for i := range n {
		r := s.lines[y+i]
		s.forget(r)
		r.reset()
		r.known = true
	}
	s.parted(y)
	s.rotate(y, s.bottom, n)
}

// parted notes that the line in the row above row y ends there, and no longer goes on in row y.
func (s *Screen) parted(y int) {
	if y > 0 {
		s.lines[y-1].wrapped = false
	} else if s.other == nil {
		s.out = s.endGoing(s.out, true)
		s.before = s.before[:0]
	}
}

// rotate rotates the rows from a to b, inclusive: the first n become the last, or the last -n the first.
func (s *Screen) rotate(a, b, n int) {
	rows := s.lines[a : b+1]
	if n < 0 {
		n += len(rows)
	}
	if n == 0 || n == len(rows) {
		return
	}
	if n == 1 {
		first := rows[0]
		copy(rows, rows[1:])
		rows[len(rows)-1] = first
		return
	}
	rotated := append(append(make([]*row, 0, len(rows)), rows[n:]...), rows[:n]...)
	copy(rows, rotated)
}

// eraseRows makes the rows from a up to b blank.
func (s *Screen) eraseRows(a, b int) {
	for y := a; y < b; y++ {
		r := s.lines[y]
		s.forget(r)
		r.reset()
		r.known = !s.config.Cut
	}
}

// forget forgets the mark if it is in r.
func (s *Screen) forget(r *row) {
	if s.marked == r {
		s.marked = nil
	}
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

// leave shows the normal screen again. If the beginning is missing, and the alternate screen was not entered after it,
// all that is known stood there.
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

// away keeps the text of a row that scrolls away.
func (s *Screen) away(r *row) {
	if s.Finished != nil {
		if !r.wrapped {
			s.before = s.before[:0]
		} else if s.before = r.appendTo(s.before, 0, 0); len(s.before) > maxLine {
			s.before = append(s.before[:0], s.before[len(s.before)-maxLine/2:]...)
		}
	}
	s.out = s.appendRow(s.out, r, 0, true)
}

// skip reports whether a row is left out, and if not, whether only what follows the mark is shown of it.
func (s *Screen) skip(r *row) (skip, rest bool) {
	switch {
	case s.config.Cut && !r.known:
		return true, false
	case !s.isMarked:
		return false, false
	case r == s.marked && r.changed >= s.markedAt:
		return false, true
	}
	return r.changed == unchanged, false
}

// appendRow appends the text of r to dst, and ends the line if there are more rows. A line that goes on in the next row
// is kept until it ends.
func (s *Screen) appendRow(dst []byte, r *row, least int, more bool) []byte {
	skip, rest := s.skip(r)
	if skip {
		return s.endGoing(dst, more)
	}
	goes := r.wrapped && more
	if !s.going && !goes && !rest && r.isShort() {
		return ended(r.appendTo(dst, 0, least), more)
	}
	switch s.scratch = s.scratch[:0]; {
	case !rest:
		s.scratch = r.appendTo(s.scratch, 0, least)
	case r.drawn:
		s.scratch = r.appendTo(s.scratch, s.markedAt, least)
	default: // combining marks take no column
		s.scratch = append(s.scratch, r.text[s.markedText:]...)
	}
	if s.config.Whole {
		dst = append(dst, s.scratch...)
	} else {
		s.gone.add(s.scratch)
	}
	s.going = true
	if goes {
		return dst
	}
	return s.endGoing(dst, more)
}

// endGoing appends the line of which only the beginning was known.
func (s *Screen) endGoing(dst []byte, more bool) []byte {
	if !s.going {
		return dst
	}
	dst = s.gone.appendTo(dst)
	s.gone.reset()
	s.going = false
	return ended(dst, more)
}

func ended(dst []byte, more bool) []byte {
	if more {
		dst = append(dst, '\n')
	}
	return dst
}

// Append appends the text to dst. It may be called once, at the end. A character that is not complete counts as
// invalid, unless Unfinished was called.
func (s *Screen) Append(dst []byte) []byte {
	s.flush()
	dst = append(dst, s.out...)
	if s.other == nil {
		return s.appendFace(dst, &s.face)
	}
	begin := len(dst)
	dst = s.appendFace(dst, s.other)
	if len(dst) > begin && dst[len(dst)-1] != '\n' {
		dst = append(dst, '\n')
	}
	return s.appendFace(dst, &s.face)
}

// appendFace appends what stands on a screen: up to the cursor, or to the last row that shows something.
func (s *Screen) appendFace(dst []byte, f *face) []byte {
	last := min(f.y, f.used)
	for y := f.used; y > last; y-- {
		if !f.lines[y].blank() {
			last = y
			break
		}
	}
	for y, r := range f.lines[:last+1] {
		least := 0
		if y == f.y {
			least = f.x
		}
		// The last line is finished if there was one below it, unless the cursor has come back to its end.
		finished := y == last && y < f.used && !r.blank() && (y != f.y || f.x < r.columns())
		dst = s.appendRow(dst, r, least, y < last || finished)
	}
	return dst
}

// Line returns the line in which the cursor is, up to the cursor. It is valid until the next call.
func (s *Screen) Line() []byte {
	s.flush()
	s.settle()
	s.scratch = s.appendLine(s.scratch[:0], s.x, s.x)
	return s.scratch
}

// Newest returns the line in which the cursor is or, if that line is blank, the next one above it that is not. It
// returns nil if all are blank. The line is valid until the next call.
func (s *Screen) Newest() []byte {
	s.flush()
	for y := s.y; y >= 0; y-- {
		if s.lines[y].blank() {
			continue
		}
		s.scratch = s.scratch[:0]
		for i := s.begin(y); i <= y; i++ {
			s.scratch = s.lines[i].appendTo(s.scratch, 0, 0)
		}
		return s.scratch
	}
	return nil
}

// appendLine appends the line of the cursor up to a column of its row; see row.appendTo.
func (s *Screen) appendLine(dst []byte, upTo, least int) []byte {
	begin := s.begin(s.y)
	if begin == 0 {
		dst = append(dst, s.before...)
	}
	for y := begin; y < s.y; y++ {
		dst = s.lines[y].appendTo(dst, 0, 0)
	}
	r := s.lines[s.y]
	switch {
	case upTo >= r.columns():
		return r.appendTo(dst, 0, least)
	case r.drawn:
		before := row{cells: r.cells[:upTo], marks: r.marks, drawn: true}
		return before.appendTo(dst, 0, least)
	}
	return append(dst, r.text[:r.offset(upTo)]...)
}

// Changed calls fn with each line of the screen that has changed since the mark and shows something.
// The line is valid until fn returns.
func (s *Screen) Changed(fn func(line []byte)) {
	s.flushErasure()
	for y := 0; y <= s.used; y++ {
		begin, changed, blank := y, false, true
		for ; ; y++ {
			changed = changed || s.lines[y].changed != unchanged
			blank = blank && s.lines[y].blank()
			if !s.lines[y].wrapped || y >= s.used {
				break
			}
		}
		if !changed || blank {
			continue
		}
		s.scratch = s.scratch[:0]
		if begin == 0 {
			s.scratch = append(s.scratch, s.before...)
		}
		for ; begin <= y; begin++ {
			s.scratch = s.lines[begin].appendTo(s.scratch, 0, 0)
		}
		fn(s.scratch)
	}
}

// Mark makes Append give only what changes from now on: rows as they stand at the end, and of the row of the cursor only
// what follows the cursor, unless something before it changes.
func (s *Screen) Mark() {
	s.isMarked = true
	s.out = s.out[:0]
	s.gone.reset()
	s.going = false
	for y, r := range s.lines {
		if y <= s.used {
			r.changed = unchanged
		}
	}
	if s.other != nil {
		for y, r := range s.other.lines {
			if y <= s.other.used {
				r.changed = unchanged
			}
		}
	}
	s.marked, s.markedAt = s.lines[s.y], s.x
	s.markedText = len(s.marked.text)
}
