package screen

// escape parses a byte of an escape sequence.
func (s *Screen) escape(b byte) {
	p := &s.parser
	switch {
	case b == 0x18 || b == 0x1a: // CAN, SUB
		p.state = inText
	case b == 0x1b:
		*p = parser{state: inEscape}
	case p.state == inString:
		if b == 0x07 {
			p.state = inText
		}
	case b < ' ': // acts as outside a sequence
		s.control(b)
	case b == 0x7f:
	case p.state == inControl:
		p.control(b)
		if b >= 0x40 {
			p.state = inText
			s.sequence(b)
		}
	case b <= 0x2f:
		p.intermediate = b
	default:
		p.state = inText
		switch b {
		case '[':
			if p.intermediate == 0 {
				p.state = inControl
				return
			}
		case ']', 'P', '^', '_', 'X':
			if p.intermediate == 0 {
				p.state = inString
				return
			}
		}
		s.short(b)
	}
}

// short applies an escape sequence other than a control sequence.
func (s *Screen) short(final byte) {
	s.returned = noReturn
	switch s.parser.intermediate {
	case '(', ')':
		s.graphics[s.parser.intermediate-'('] = final == '0'
		return
	case 0:
	default:
		return
	}
	switch final {
	case '7', 'M':
		s.settle()
	}
	switch final {
	case '7':
		s.save()
	case '8':
		s.restore()
	case 'D':
		s.index()
	case 'E':
		s.x = 0
		s.index()
	case 'M':
		s.up()
	case 'c':
		s.clear()
	}
}

func (s *Screen) save() { s.saved = s.cursor }

func (s *Screen) restore() {
	s.cursor = s.saved
	s.x = s.column()
}

// sequence applies a control sequence.
func (s *Screen) sequence(final byte) {
	p := &s.parser
	was := s.returned
	s.returned = noReturn
	if p.intermediate != 0 {
		if p.intermediate == '!' && final == 'p' {
			s.soft()
		}
		return
	}
	first := p.params[0]
	n := max(first, 1)
	switch final {
	case 'm', 'n', 'q', 't', 'c':
		if final == 'm' && p.private == 0 && was == afterReturn && first == 0 && p.n == 0 {
			s.returned = afterColour
		}
		return
	case 'h', 'l':
		s.modes(final == 'h')
		return
	case 'J', 'K': // with '?', only unprotected cells, which all cells are
		if p.private != 0 && p.private != '?' {
			return
		}
		if final == 'K' && first == 0 && was == afterColour && s.x == 0 {
			s.returned = beforeErasure
			return
		}
		s.settle()
		if final == 'J' {
			s.eraseScreen(first)
		} else {
			s.eraseLine(first)
		}
		return
	}
	if p.private != 0 {
		return
	}
	s.settle()
	switch final {
	case 'A', 'F':
		least := 0
		if s.y >= s.top {
			least = s.top
		}
		s.x, s.y = s.column(), max(s.y-n, least)
		if final == 'F' {
			s.x = 0
		}
	case 'B', 'E', 'e':
		most := s.rows - 1
		if s.y <= s.bottom {
			most = s.bottom
		}
		s.x, s.y = s.column(), min(s.y+n, most)
		if final == 'E' {
			s.x = 0
		}
	case 'C', 'a':
		s.x = min(s.column()+n, s.cols-1)
	case 'D':
		s.x = max(s.column()-n, 0)
	case 'G', '`':
		if s.x = min(n, s.cols) - 1; s.x == 0 {
			s.carriageReturn()
		}
	case 'd':
		s.move(n-1, s.column())
	case 'H', 'f':
		col := 0
		if p.n > 0 {
			col = max(p.params[1], 1) - 1
		}
		s.move(n-1, col)
	case 'I':
		s.x = min((s.column()/tabWidth+min(n, s.cols))*tabWidth, s.cols-1)
	case 'Z':
		s.x = max(((s.column()+tabWidth-1)/tabWidth-min(n, s.cols))*tabWidth, 0)
	case 'L', 'M':
		if s.y >= s.top && s.y <= s.bottom {
			s.x = 0
			if final == 'L' {
				s.insertRows(s.y, n)
			} else {
				s.deleteRows(s.y, n)
			}
		}
	case 'P':
		s.x = s.column()
		s.lines[s.y].remove(s.x, n)
		s.lines[s.y].wrapped = false
	case '@':
		s.x = s.column()
		s.lines[s.y].insert(s.x, min(n, s.cols-s.x), s.cols)
	case 'X':
		s.x = s.column()
		s.eraseColumns(s.x, s.x+n)
	case 'S':
		s.lines[s.bottom].wrapped = false
		s.scrollUp(n)
	case 'T':
		if p.n == 0 {
			s.scrollDown(n)
		}
	case 'b':
		if s.last != 0 {
			for range min(n, s.cols) {
				s.put(s.last)
			}
		}
	case 'r':
		bottom := s.rows
		if p.n > 0 && p.params[1] > 0 {
			bottom = min(p.params[1], s.rows)
		}
		if n < bottom {
			s.top, s.bottom = n-1, bottom-1
			s.move(0, 0)
		}
	case 's':
		if first == 0 && p.n == 0 {
			s.save()
		}
	case 'u':
		s.restore()
	}
}

// move moves the cursor to a row, which may count from the top of the scroll region, and a column.
func (s *Screen) move(y, x int) {
	if s.origin {
		s.y = min(y+s.top, s.bottom)
	} else {
		s.y = min(y, s.rows-1)
	}
	s.x = min(x, s.cols-1)
}

// eraseScreen erases the screen from the cursor on, up to the cursor, or all of it. Lines that have scrolled away stay.
func (s *Screen) eraseScreen(which int) {
	switch which {
	case 0:
		s.eraseLine(0)
		s.eraseRows(s.y+1, s.rows)
		s.lines[s.y].wrapped = false
		s.used = min(s.used, s.y)
	case 1:
		s.eraseRows(0, s.y)
		s.eraseLine(1)
	case 2:
		s.eraseRows(0, s.rows)
		s.used = 0
	}
}

// eraseLine erases the row of the cursor from the cursor on, up to the cursor, or all of it. A row that was filled
// loses nothing if the cursor has not left its end: grep --color erases there. A program that writes to a pipe means the
// line, and does not know how many rows it takes.
func (s *Screen) eraseLine(which int) {
	whole := !s.config.Terminal && s.other == nil
	if whole && which == 2 {
		s.y = s.begin(s.y)
	}
	if whole && which != 1 && s.x < s.cols {
		for y := s.y; y+1 < s.rows && s.lines[y].wrapped; y++ {
			s.lines[y].wrapped = false
			s.lines[y+1].erase(0, s.cols)
		}
	}
	switch which {
	case 0:
		if s.nowrap {
			s.x = s.column()
		}
		s.eraseColumns(s.x, s.cols)
	case 1:
		s.eraseColumns(0, s.x+1)
	case 2:
		s.eraseColumns(0, s.cols)
	}
}

// eraseColumns erases the columns from a up to b in the row of the cursor. A line does not go on in the next row if
// its last column here, or its first column there, is erased.
func (s *Screen) eraseColumns(a, b int) {
	b = min(b, s.cols)
	r := s.lines[s.y]
	r.erase(a, b)
	if a < b && b == s.cols {
		r.wrapped = false
	}
	if a == 0 {
		s.parted(s.y)
	}
}

// modes switches modes on or off.
func (s *Screen) modes(on bool) {
	p := &s.parser
	for _, mode := range p.params[:p.n+1] {
		switch {
		case p.private == 0 && mode == 4:
			s.insert = on
		case p.private != '?':
		case mode == 6:
			s.origin = on
			s.move(0, 0)
		case mode == 7:
			s.nowrap = !on
			s.x = s.column()
		case mode == 47 || mode == 1047 || mode == 1048 || mode == 1049:
			s.settle()
			s.alternate(mode, on)
		}
	}
}

// alternate shows the alternate screen or the normal one, saves or restores the cursor, or does both.
func (s *Screen) alternate(mode int, on bool) {
	switch {
	case mode == 1048 && on:
		s.save()
	case mode == 1048:
		s.restore()
	case mode == 1049 && on:
		s.save()
		s.enter()
	case on:
		s.enter()
	case mode == 1049 && s.other != nil:
		s.leave()
		s.restore()
	default:
		s.leave()
	}
}

// soft resets the modes, but not the screen or the position.
func (s *Screen) soft() {
	s.cursor = cursor{x: s.x, y: s.y}
	s.saved = cursor{}
	s.top, s.bottom = 0, s.rows-1
}
