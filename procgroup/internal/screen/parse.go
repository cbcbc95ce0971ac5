package screen

import "unicode/utf8"

// A parserState says whether the parser is in plain text, or in which kind of escape sequence of ECMA-48.
type parserState byte

const (
	inText    parserState = iota
	inEscape              // after ESC and any intermediate characters
	inControl             // after ESC [
	inString              // after ESC and one of ]P^_X, until BEL or ESC \, which is a sequence itself
)

// maxParam is the largest parameter of a sequence: a greater number counts as maxParam. maxParams is the number of
// parameters that are kept: each further one replaces the last.
const (
	maxParam  = 1 << 16
	maxParams = 8
)

type parser struct {
	state        parserState
	private      byte // '<', '=', '>' or '?' after ESC [; 0 if there was none
	intermediate byte // the last intermediate character; 0 if there was none
	params       [maxParams]int
	n            int // the index of the last parameter in params; 0 also if there was none
}

// Write writes output. The output may be divided between calls anywhere, even within a character or a sequence.
func (s *Screen) Write(p []byte) {
	for len(p) > 0 {
		if s.returned != noReturn {
			s.afterReturn(p[0])
		}
		if s.parser.state == inText && s.partialLen == 0 {
			if n := plainLength(p); n > 0 {
				s.plain(p[:n])
				p = p[n:]
				continue
			}
		}
		b := p[0]
		switch {
		case b == '\n': // ends an escape sequence too, so that a broken sequence hides nothing after it
			s.endPartial()
			s.parser.state = inText
			s.lineFeed()
		case s.parser.state != inText && b >= utf8.RuneSelf && s.parser.state != inString:
			s.parser.state = inText // no sequence has such a byte
			continue
		case s.parser.state != inText:
			s.escape(b)
		case b >= utf8.RuneSelf:
			s.addByte(b)
		case b < ' ' || b == 0x7f:
			s.endPartial()
			s.control(b)
		default:
			s.endPartial()
			continue
		}
		p = p[1:]
	}
}

// Unfinished drops an incomplete character at the end of what was written. Call it before Append if the rest of the
// character may exist but was not written.
func (s *Screen) Unfinished() { s.partialLen = 0 }

// flush writes an incomplete character as invalid, and does an erasure that waits for the next byte.
func (s *Screen) flush() {
	s.endPartial()
	s.flushErasure()
}

func (s *Screen) flushErasure() {
	if s.returned == beforeErasure {
		s.returned = noReturn
		s.settle()
		s.eraseLine(0)
	}
}

// addByte adds a byte of a character that is not ASCII, and writes the character once it is complete or invalid.
func (s *Screen) addByte(b byte) {
	s.partial[s.partialLen] = b
	s.partialLen++
	for s.partialLen > 0 && utf8.FullRune(s.partial[:s.partialLen]) {
		s.addFirst()
	}
}

// endPartial writes the bytes of an incomplete character, each as an invalid character.
func (s *Screen) endPartial() {
	for s.partialLen > 0 {
		s.addFirst()
	}
}

func (s *Screen) addFirst() {
	r, n := utf8.DecodeRune(s.partial[:s.partialLen])
	s.partialLen = copy(s.partial[:], s.partial[n:s.partialLen])
	if r >= 0xa0 { // the others are control characters
		s.put(r)
	}
}

// control applies a control character other than a line feed.
func (s *Screen) control(b byte) {
	switch b {
	case 0x1b:
		s.parser = parser{state: inEscape}
	case '\r':
		s.carriageReturn()
		if s.returned != beforeErasure {
			s.returned = afterReturn
		}
	case '\b':
		s.x = max(s.column()-1, 0)
	case '\t':
		s.tab()
	case '\v', '\f':
		s.index()
	case 0x0e:
		s.shift = 1
	case 0x0f:
		s.shift = 0
	}
}

// afterReturn ends the state s.returned before byte b, unless b may continue it. If an erasure waits and b is not a
// line feed, afterReturn does the erasure.
func (s *Screen) afterReturn(b byte) {
	if s.parser.state != inText || b == 0x1b && s.returned < beforeErasure || b == '\r' {
		return
	}
	if b != '\n' {
		s.flushErasure()
	}
	s.returned = noReturn
}

// control parses a byte of a control sequence.
func (p *parser) control(b byte) {
	switch {
	case b >= '0' && b <= '9':
		p.params[p.n] = min(p.params[p.n]*10+int(b-'0'), maxParam)
	case b == ';' || b == ':':
		p.n = min(p.n+1, maxParams-1)
		p.params[p.n] = 0
	case b >= '<' && b <= '?':
		p.private = b
	case b < '0':
		p.intermediate = b
	}
}
