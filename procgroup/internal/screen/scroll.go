package screen

import "slices"

// scrollUp moves the rows of the scroll region up by n. Rows that leave the normal screen at its top scroll away, which
// keeps their text; other rows are lost.
func (s *Screen) scrollUp(n int) {
	n = min(n, s.bottom-s.top+1)
	for i := range n {
		r := s.lines[s.top+i]
		if s.top == 0 && s.other == nil && i <= s.used {
			s.keepScrolled(r)
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

// insertRows inserts n blank rows at row y of the scroll region. Rows that it moves beyond the region are lost.
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

// deleteRows removes n rows at row y of the scroll region. Blank rows appear at the bottom of the region.
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

// parted ends the line in the row above row y, so that row y does not continue it. That row may have scrolled away.
func (s *Screen) parted(y int) {
	if y > 0 {
		s.lines[y-1].wrapped = false
	} else if s.other == nil {
		s.out = s.endGoing(s.out, true)
		s.before = s.before[:0]
	}
}

// rotate rotates the rows from a to b, inclusive: the first n become the last or, if n is negative, the last -n become
// the first.
func (s *Screen) rotate(a, b, n int) {
	rows := s.lines[a : b+1]
	if n < 0 {
		n += len(rows)
	}
	slices.Reverse(rows[:n])
	slices.Reverse(rows[n:])
	slices.Reverse(rows)
}

// eraseRows makes the rows from a up to, but not including, b blank.
func (s *Screen) eraseRows(a, b int) {
	for y := a; y < b; y++ {
		r := s.lines[y]
		s.forget(r)
		r.reset()
		r.known = !s.config.Cut
	}
}

// forget removes the mark if it is in r, whose text is about to go.
func (s *Screen) forget(r *row) {
	if s.marked == r {
		s.marked = nil
	}
}
