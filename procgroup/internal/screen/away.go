package screen

// maxLine is the number of bytes of scrolled-away text of a line that Finished gets at most.
const maxLine = 64 << 10

// keepScrolled appends the text of r, a row that scrolls away, to the lines that have scrolled away.
func (s *Screen) keepScrolled(r *row) {
	if s.Finished != nil {
		if !r.wrapped {
			s.before = s.before[:0]
		} else if s.before = r.appendTo(s.before, 0, 0); len(s.before) > maxLine {
			s.before = append(s.before[:0], s.before[len(s.before)-maxLine/2:]...)
		}
	}
	s.out = s.appendRow(s.out, r, 0, true)
}

// skip reports whether the text leaves r out. If it does not, rest reports whether the text has only the part of r
// after the mark.
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

// appendRow appends the text of r to dst. more says that another row follows; then a line end is appended, unless r is
// wrapped. The text of a wrapped row is held in s.gone until the line ends, so that the line can be cut in the middle.
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

// endGoing ends the line that appendRow has begun and not ended, if there is one. It appends the text that s.gone
// holds, and a line end if more is true.
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

// Append appends the text of s to dst and returns it. If the alternate screen is shown, its text follows that of the
// normal screen. Append may be called once, after the last Write. An incomplete character at the end counts as invalid,
// unless Unfinished was called.
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

// appendFace appends the text of f up to the row of the cursor, but not beyond the rows that have been used. If a row
// further down is not blank, it appends the text up to the last such row.
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
		// The last line is finished if a line was below it, unless the cursor has come back to its end.
		finished := y == last && y < f.used && !r.blank() && (y != f.y || f.x < r.columns())
		dst = s.appendRow(dst, r, least, y < last || finished)
	}
	return dst
}

// Line returns the line of the cursor up to the cursor. It is valid until the next call of a method of s.
func (s *Screen) Line() []byte {
	s.flush()
	s.settle()
	s.scratch = s.appendLine(s.scratch[:0], s.x, s.x)
	return s.scratch
}

// Newest returns the line of the cursor, up to the row of the cursor, or, if that row is blank, the nearest line above
// that is not. It returns nil if all these rows are blank. The line is valid until the next call of a method of s.
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

// appendLine appends the line of the cursor up to column upTo of the cursor's row. Blanks at its end are left out as in
// row.appendTo.
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

// Changed calls fn with each line on the screen that has changed since the call of Mark and is not blank. The line is
// valid until fn returns.
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

// Mark makes Append and Changed leave out what does not change from now on. Append leaves out rows, and of the row of
// the cursor also the part before the present position of the cursor, unless that part changes. Changed leaves out
// lines.
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
