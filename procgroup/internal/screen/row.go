package screen

import (
	"math"
	"unicode/utf8"
)

// The contents of cells without a character of their own.
const (
	unwritten rune = 0
	covered   rune = -1 // the right half of the wide character before it
	tabbed    rune = -2 // a column of the tab before it
)

const (
	tabWidth = 8
	// maxMarks is about the number of bytes of combining marks that a cell can have.
	maxMarks = 256
	// unchanged is the value of row.changed if the row has not changed since the call of Mark.
	unchanged = math.MaxInt
)

// A row is one row of the screen. A row to which characters were only appended is stored as text. Any other change
// converts it to cells.
type row struct {
	text  []byte
	width int            // the width of text, in columns
	cells []rune         // one for each column, if drawn
	drawn bool           // the row is stored as cells
	marks map[int][]byte // combining marks by the index of their cell, if drawn

	wrapped bool // the next row continues the line
	known   bool // something was written to the row, or it was erased
	changed int  // the first column that has changed since the call of Mark
}

// reset makes r a new blank row.
func (r *row) reset() {
	*r = row{text: r.text[:0], cells: r.cells[:0]}
}

// draw converts r to cells.
func (r *row) draw() {
	if r.drawn {
		return
	}
	r.drawn, r.cells = true, r.cells[:0]
	for p := r.text; len(p) > 0; {
		c, n := utf8.DecodeRune(p)
		switch w := width(c); {
		case c == '\t':
			r.cells = append(r.cells, c)
			for len(r.cells) < r.width && len(r.cells)%tabWidth != 0 {
				r.cells = append(r.cells, tabbed)
			}
		case w == 0:
			r.mark(len(r.cells), p[:n])
		default:
			r.cells = append(r.cells, c)
			if w == 2 {
				r.cells = append(r.cells, covered)
			}
		}
		p = p[n:]
	}
	r.text, r.width = r.text[:0], 0
}

// mark adds the combining mark p to the character before column x. It drops p if there is no such character, or if the
// character has too many marks.
func (r *row) mark(x int, p []byte) {
	x = min(x, len(r.cells)) - 1
	for x > 0 && r.cells[x] < 0 {
		x--
	}
	if x < 0 || len(r.marks[x]) > maxMarks {
		return
	}
	if r.marks == nil {
		r.marks = make(map[int][]byte)
	}
	r.marks[x] = append(r.marks[x], p...)
}

// touch records a change of r from column x on.
func (r *row) touch(x int) {
	r.known = true
	r.changed = min(r.changed, x)
}

// plain writes printable ASCII characters at column x.
func (r *row) plain(x int, p []byte) {
	r.touch(x)
	if !r.drawn && x == r.width {
		r.text = append(r.text, p...)
		r.width += len(p)
		return
	}
	r.make(x, len(p))
	for i, b := range p {
		r.cells[x+i] = rune(b)
	}
}

// put writes a character of w columns at column x. If w is 0, c is a combining mark of the character before x.
func (r *row) put(x int, c rune, w int) {
	r.touch(x)
	if !r.drawn && x == r.width {
		if w > 0 || len(r.text) < maxMarks*(r.width+1) {
			r.text = utf8.AppendRune(r.text, c)
			r.width += w
		}
		return
	}
	if w == 0 {
		r.draw()
		r.mark(x, utf8.AppendRune(nil, c))
		return
	}
	r.make(x, w)
	r.cells[x] = c
	if w == 2 {
		r.cells[x+1] = covered
	}
}

// make prepares n cells from column x on for new characters: it removes what would be cut in half, and the marks.
func (r *row) make(x, n int) {
	r.draw()
	r.split(x)
	r.split(x + n)
	r.extend(x + n)
	r.unmark(x, x+n)
}

// extend gives r at least n cells.
func (r *row) extend(n int) {
	for len(r.cells) < n {
		r.cells = append(r.cells, unwritten)
	}
}

// unmark removes the combining marks of the cells from a up to, but not including, b.
func (r *row) unmark(a, b int) {
	for x := a; x < b && len(r.marks) > 0; x++ {
		delete(r.marks, x)
	}
}

// split removes a character that begins before column x and reaches into it, because half a character cannot be shown:
// a wide character becomes two blanks, and the cells of a tab become unwritten.
func (r *row) split(x int) {
	if x <= 0 || x >= len(r.cells) {
		return
	}
	switch r.cells[x] {
	case covered:
		r.cells[x-1], r.cells[x] = ' ', ' '
		r.unmark(x-1, x)
	case tabbed:
		begin := x
		for r.cells[begin] == tabbed {
			begin--
		}
		for i := begin; i < len(r.cells) && (i == begin || r.cells[i] == tabbed); i++ {
			r.cells[i] = unwritten
		}
	}
}

// tab appends a tab that reaches from column x up to column to, and reports whether it did. It returns false, and
// changes nothing, if r does not end at x.
func (r *row) tab(x, to int) bool {
	if x != r.columns() {
		return false
	}
	r.touch(x)
	if r.drawn {
		r.extend(to)
		r.cells[x] = '\t'
		for i := x + 1; i < to; i++ {
			r.cells[i] = tabbed
		}
		return true
	}
	r.text = append(r.text, '\t')
	r.width = to
	return true
}

// erase erases the columns from a up to, but not including, b.
func (r *row) erase(a, b int) {
	r.touch(a)
	switch b = min(b, r.columns()); {
	case a >= b:
		return
	case a == 0 && b == r.columns():
		known, changed, wrapped := r.known, r.changed, r.wrapped
		r.reset()
		r.known, r.changed, r.wrapped = known, changed, wrapped
		return
	}
	r.make(a, b-a)
	if b == len(r.cells) {
		r.cells = r.cells[:a]
		return
	}
	clear(r.cells[a:b])
}

// remove removes n columns at x. The rest of the row moves to the left.
func (r *row) remove(x, n int) {
	r.touch(x)
	if x >= r.columns() {
		return
	}
	n = min(n, r.columns()-x)
	r.make(x, n)
	r.untab(x)
	r.move(x+n, -n)
	r.cells = append(r.cells[:x], r.cells[x+n:]...)
}

// insert inserts n blank columns at x in a row of at most cols.
func (r *row) insert(x, n, cols int) {
	r.touch(x)
	if x >= r.columns() {
		return
	}
	n = min(n, cols-x)
	r.draw()
	r.split(x)
	r.untab(x)
	old := len(r.cells)
	keep := min(old, cols-n) // cells moved beyond the last column are lost
	r.split(keep)
	r.unmark(keep, old)
	r.move(x, n)
	r.extend(min(old+n, cols))
	copy(r.cells[x+n:], r.cells[x:keep])
	clear(r.cells[x : x+n])
}

// untab makes the tabs from column x on unwritten, because they would have other widths after a move.
func (r *row) untab(x int) {
	for i, c := range r.cells[x:] {
		if c == '\t' || c == tabbed {
			r.cells[x+i] = unwritten
		}
	}
}

// move moves the combining marks from column x on by n columns, to the left if n is negative.
func (r *row) move(x, n int) {
	if len(r.marks) == 0 {
		return
	}
	moved := make(map[int][]byte, len(r.marks))
	for at, p := range r.marks {
		if at >= x {
			at += n
		}
		moved[at] = p
	}
	r.marks = moved
}
