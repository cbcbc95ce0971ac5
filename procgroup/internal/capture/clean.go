package capture

import (
	"fmt"
	"unicode/utf8"
)

// halfLine is how many characters are kept of each half of a line that is too long to be shown.
const halfLine = 1000

// A Cleaner makes of the output of a command what a person would have read on a terminal. Of each
// line it keeps what follows the last carriage return, or the last sequence that moves the cursor to
// the first column of the line. A backspace takes back a character, and a sequence that erases the
// line takes back the line. Other escape sequences are dropped, and so are control characters other
// than tab and newline. Each byte that is no UTF-8 becomes U+FFFD. A line of more than 2000
// characters is cut in the middle.
//
// How the output is divided into chunks makes no difference. A Cleaner needs a few kilobytes,
// however long a line is. The zero Cleaner is ready for use.
type Cleaner struct {
	line     line
	returned bool   // the cursor is in the first column again, and nothing that a person sees came since then
	part     []byte // of a character
	state    cleanerState
	param    int // of the control sequence: its only number, 0 if there is none, and noParam for all others
}

const noParam = 10 // no number of a sequence that is understood has two digits

// A cleanerState says within which escape sequence, as ECMA-48 has them, a Cleaner is.
type cleanerState byte

const (
	inText    cleanerState = iota
	inEscape               // after ESC and any intermediate characters
	inControl              // after ESC [
	inString               // after ESC ] and the like, until BEL or ESC \, which is a sequence itself
)

// Append appends to dst the lines that end in p, and returns it. The beginning of a line that does
// not end in p waits for its rest, because a carriage return may still take it back.
func (c *Cleaner) Append(dst, p []byte) []byte {
	for len(p) > 0 {
		if c.state == inText && len(c.part) == 0 {
			if n := plainLength(p); n > 0 {
				c.see()
				c.line.addPlain(p[:n])
				p = p[n:]
				continue
			}
		}
		b := p[0]
		switch {
		case b == '\n': // ends an escape sequence too, so that a broken one cannot hide what follows
			c.endPart()
			dst = append(c.line.appendTo(dst), '\n')
			c.line.reset()
			c.returned, c.state = false, inText
		case c.state != inText && b >= utf8.RuneSelf && c.state != inString:
			c.state = inText // no such sequence
			continue
		case c.state != inText:
			c.escape(b)
		case b >= utf8.RuneSelf:
			c.addByte(b)
		default:
			c.endPart()
			c.control(b)
		}
		p = p[1:]
	}
	return dst
}

// End appends the unfinished line to dst, returns it, and resets the Cleaner.
func (c *Cleaner) End(dst []byte) []byte {
	c.endPart()
	dst = c.line.appendTo(dst)
	c.line.reset()
	c.returned, c.state = false, inText
	return dst
}

// plainLength returns how many bytes at the beginning of p are printable ASCII characters or tabs.
func plainLength(p []byte) int {
	for i, b := range p {
		if (b < ' ' && b != '\t') || b > '~' {
			return i
		}
	}
	return len(p)
}

// see notes that what follows is seen in place of what was before a carriage return.
func (c *Cleaner) see() {
	if c.returned {
		c.line.reset()
		c.returned = false
	}
}

// control applies a control character.
func (c *Cleaner) control(b byte) {
	switch b {
	case 0x1b:
		c.state = inEscape
	case '\r':
		c.returned = true // "\r\n" ends a line and takes nothing back
	case '\b':
		if !c.returned {
			c.line.back()
		}
	default:
		if b >= ' ' && b < 0x7f || b == '\t' { // after part of a character
			c.see()
			c.line.addPlain([]byte{b})
		}
	}
}

// addByte adds a byte of a character that is not ASCII.
func (c *Cleaner) addByte(b byte) {
	c.part = append(c.part, b)
	for len(c.part) > 0 && utf8.FullRune(c.part) {
		c.addFirst()
	}
}

// endPart adds the bytes of a character that has no rest.
func (c *Cleaner) endPart() {
	for len(c.part) > 0 {
		c.addFirst()
	}
}

func (c *Cleaner) addFirst() {
	r, n := utf8.DecodeRune(c.part)
	c.part = c.part[:copy(c.part, c.part[n:])]
	if r >= 0xa0 { // those below are control characters
		c.see()
		c.line.addRune(r)
	}
}

// escape goes on within an escape sequence.
func (c *Cleaner) escape(b byte) {
	switch {
	case b == 0x18 || b == 0x1a: // CAN, SUB
		c.state = inText
	case b == 0x1b:
		c.state = inEscape
	case c.state == inString:
		if b == 0x07 {
			c.state = inText
		}
	case b < ' ' || b == 0x7f: // ignored in a sequence
	case c.state == inControl && b >= 0x40:
		c.state = inText
		c.sequence(b)
	case c.state == inControl:
		if c.param *= 10; b >= '0' && b <= '9' {
			c.param += int(b - '0')
		} else {
			c.param = noParam
		}
		c.param = min(c.param, noParam)
	case b <= 0x2f:
		c.state = inEscape // intermediate characters follow, then a final one
	default:
		switch b {
		case '[':
			c.state, c.param = inControl, 0
		case ']', 'P', '^', '_', 'X':
			c.state = inString
		default:
			c.state = inText
		}
	}
}

// sequence applies the control sequences that bars and spinners use in place of a carriage return, and to take back
// what they have drawn. Others move within text that stays. One that erases the rest of a line to which a carriage
// return went back is ignored: what follows replaces that line anyway, and grep --color ends the lines of a file from
// Windows that way, which a terminal does not show.
func (c *Cleaner) sequence(final byte) {
	switch {
	case (final == 'G' || final == '`') && c.param <= 1: // to a column of the line
		c.returned = true
	case (final == 'K' || final == 'J') && (c.param == 1 || c.param == 2): // erase the line, or with others
		c.line.reset()
	}
}

// A line is the beginning and the end of a line.
type line struct {
	head, tail part
	left       int // characters left out between them
}

// A part is text with the number of its characters.
type part struct {
	text  []byte
	runes int
}

func (l *line) reset() {
	l.head = part{text: l.head.text[:0]}
	l.tail = part{text: l.tail.text[:0]}
	l.left = 0
}

// addPlain adds ASCII characters.
func (l *line) addPlain(p []byte) {
	if room := halfLine - l.head.runes; room > 0 { // then the tail is empty
		n := min(room, len(p))
		l.head.text = append(l.head.text, p[:n]...)
		l.head.runes += n
		p = p[n:]
	}
	for len(p) > 0 {
		n := min(halfLine, len(p))
		l.tail.text = append(l.tail.text, p[:n]...)
		l.tail.runes += n
		l.trim(2 * halfLine)
		p = p[n:]
	}
}

func (l *line) addRune(r rune) {
	if l.head.runes < halfLine {
		l.head.text = utf8.AppendRune(l.head.text, r)
		l.head.runes++
		return
	}
	l.tail.text = utf8.AppendRune(l.tail.text, r)
	l.tail.runes++
	l.trim(2 * halfLine)
}

// trim leaves out the beginning of the tail if it has more than most characters.
func (l *line) trim(most int) {
	if l.tail.runes <= most {
		return
	}
	drop, n := l.tail.runes-halfLine, 0
	for range drop {
		_, size := utf8.DecodeRune(l.tail.text[n:])
		n += size
	}
	l.tail.text = l.tail.text[:copy(l.tail.text, l.tail.text[n:])]
	l.tail.runes -= drop
	l.left += drop
}

// back takes the last character back. One that was left out is only counted.
func (l *line) back() {
	switch {
	case l.tail.runes > 0:
		l.tail.back()
	case l.left > 0:
		l.left--
	case l.head.runes > 0:
		l.head.back()
	}
}

func (p *part) back() {
	_, n := utf8.DecodeLastRune(p.text)
	p.text = p.text[:len(p.text)-n]
	p.runes--
}

func (l *line) appendTo(dst []byte) []byte {
	l.trim(halfLine)
	dst = append(dst, l.head.text...)
	if l.left > 0 {
		dst = fmt.Appendf(dst, " [%s left out] ", count(int64(l.left), "character"))
	}
	return append(dst, l.tail.text...)
}

// count returns n with its unit, such as "1 line" or "2 lines".
func count(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
