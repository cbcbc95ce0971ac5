package screen

import "strings"

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
	case b < ' ': // a control character within a sequence acts at once
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
		switch {
		case p.intermediate == 0 && b == '[':
			p.state = inControl
		case p.intermediate == 0 && strings.IndexByte("]P^_X", b) >= 0:
			p.state = inString
		default:
			s.short(b)
		}
	}
}

// short applies an escape sequence other than a control sequence.
func (s *Screen) short(final byte) {
	s.returned = noReturn
	if set := s.parser.intermediate; set != 0 {
		if set == '(' || set == ')' {
			s.graphics[set-'('] = final == '0'
		}
		return
	}
	switch final {
	case '7':
		s.settle()
		s.save()
	case '8':
		s.restore()
	case 'D':
		s.index()
	case 'E':
		s.x = 0
		s.index()
	case 'M':
		s.settle()
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
	case 'J', 'K': // '?' spares protected cells, and no cell is protected
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

// move moves the cursor to row y and column x. In origin mode y counts from the top of the scroll region.
func (s *Screen) move(y, x int) {
	if s.origin {
		s.y = min(y+s.top, s.bottom)
	} else {
		s.y = min(y, s.rows-1)
	}
	s.x = min(x, s.cols-1)
}

// eraseScreen erases the screen: from the cursor on if which is 0, up to the cursor if it is 1, all of it if it is 2.
// Lines that have scrolled away stay.
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

// eraseLine erases the row of the cursor: from the cursor on if which is 0, up to the cursor if it is 1, all of it if
// it is 2. If a character has just filled the row, 0 erases nothing, because grep --color erases there. For output from
// a pipe, 0 and 2 also erase the rows that continue the line, since the program does not know how many rows it takes.
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

// eraseColumns erases the columns from a up to, but not including, b in the row of the cursor. Erasing the last column
// parts the row from the next row, and erasing the first column parts it from the row above.
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

// modes switches the modes that the parameters name on or off. It supports insert, origin and wrap mode and the
// alternate screen, and ignores other modes.
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

// alternate switches one of the modes of the alternate screen. 47 and 1047 enter or leave it, 1048 saves or restores
// the cursor, and 1049 does both.
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

// soft resets the modes, the saved cursor and the scroll region. The text and the position of the cursor stay.
func (s *Screen) soft() {
	s.cursor = cursor{x: s.x, y: s.y}
	s.saved = cursor{}
	s.top, s.bottom = 0, s.rows-1
}
