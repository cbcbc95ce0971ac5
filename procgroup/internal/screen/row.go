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
	// maxMarks bounds the bytes of combining marks in a cell.
	maxMarks = 256
	// unchanged is the first changed column of a row that has not changed.
	unchanged = math.MaxInt
)

// A row is one row of the screen. Most rows are only appended to: these have text. Any other change
// gives a row cells.
type row struct {
	text  []byte
	width int    // the width of text, in columns
	cells []rune // if drawn
	drawn bool
	marks map[int][]byte // combining marks by the cell that they belong to

	wrapped bool // the line goes on in the next row
	known   bool // something was written to it, or it was erased
	changed int  // the first column that has changed since the mark
}

// reset makes r blank.
func (r *row) reset() {
	*r = row{text: r.text[:0], cells: r.cells[:0]}
}

// draw gives r cells.
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

// mark adds a combining mark to the character before column x.
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

// touch notes that r changes from column x on.
func (r *row) touch(x int) {
	r.known = true
	r.changed = min(r.changed, x)
}

// plain appends ASCII characters at column x.
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

// put writes a character of w columns at column x.
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

// make makes n cells from column x on ready to be written to.
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

// unmark removes the combining marks of the cells from a up to b.
func (r *row) unmark(a, b int) {
	if b-a < len(r.marks) {
		for x := a; x < b; x++ {
			delete(r.marks, x)
		}
		return
	}
	for x := range r.marks {
		if x >= a && x < b {
			delete(r.marks, x)
		}
	}
}

// split removes a character that takes columns on both sides of column x, because half of it cannot stay: a wide
// character becomes two blanks, and the cells of a tab become unwritten.
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

// tab writes a tab at column x, up to column to, and reports whether it did. It overwrites nothing.
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

// erase erases the columns from a up to b.
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

// remove removes n columns at x, and what stands after them moves there.
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

// untab blanks the tabs from column x on: elsewhere their widths would differ.
func (r *row) untab(x int) {
	for i, c := range r.cells[x:] {
		if c == '\t' || c == tabbed {
			r.cells[x+i] = unwritten
		}
	}
}

// move moves the combining marks from column x on by n.
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
