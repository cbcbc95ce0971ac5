package screen

import "unicode/utf8"

// columns returns the number of columns up to the end of r.
func (r *row) columns() int {
	if r.drawn {
		return len(r.cells)
	}
	return r.width
}

// isShort reports whether r, as a whole line, certainly needs no cut. It looks at bytes, not at characters, and so may
// return false for a row that needs none.
func (r *row) isShort() bool {
	return max(len(r.text), len(r.cells)) <= 2*halfLine && len(r.marks) == 0
}

// blank reports whether r has nothing but blanks and tabs.
func (r *row) blank() bool {
	if !r.drawn {
		for _, b := range r.text {
			if b != ' ' && b != '\t' {
				return false
			}
		}
		return true
	}
	return r.end(0) == 0
}

// end returns the column after the last one that is not blank, or column least if that is greater, but not beyond the
// end of r. r must be drawn.
func (r *row) end(least int) int {
	n := len(r.cells)
	for n > least {
		if c := r.cells[n-1]; c != unwritten && c != ' ' && c != '\t' && c != tabbed {
			break
		}
		n--
	}
	return n
}

// appendTo appends the text of r from column a on. It leaves out blanks at the end from column least on, except in a
// row to which characters were only appended, or which is wrapped.
func (r *row) appendTo(dst []byte, a, least int) []byte {
	if !r.drawn {
		return append(dst, r.text[r.offset(a):]...)
	}
	end := r.end(least)
	if r.wrapped {
		end = len(r.cells)
	}
	for x := a; x < end; x++ {
		switch c := r.cells[x]; {
		case c == unwritten:
			dst = append(dst, ' ')
		case c > 0 && c < utf8.RuneSelf:
			dst = append(dst, byte(c))
		case c > 0:
			dst = utf8.AppendRune(dst, c)
		}
		if r.marks != nil {
			dst = append(dst, r.marks[x]...)
		}
	}
	return dst
}

// offset returns the index in r.text at which column x begins.
func (r *row) offset(x int) int {
	if x == 0 {
		return 0
	}
	if x >= r.width {
		return len(r.text)
	}
	at := 0
	for col := 0; at < len(r.text) && col < x; {
		c, n := utf8.DecodeRune(r.text[at:])
		if c == '\t' {
			col = min(col-col%tabWidth+tabWidth, r.width)
		} else {
			col += width(c)
		}
		at += n
	}
	return at
}
