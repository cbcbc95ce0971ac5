package transcript

import "unicode/utf8"

// A state is how far an escape sequence has got, as ECMA-48 has them.
type state uint8

const (
	ground       state = iota
	escaped            // after ESC
	intermediate       // after ESC and characters from ' ' to '/'
	csi                // after ESC [
	text               // within a string, such as a title, which ends with BEL or a sequence such as ESC \
)

const (
	bel, backspace, escape, del = 0x07, 0x08, 0x1b, 0x7f

	replacement = string(utf8.RuneError)
)

// A cleaner turns output into lines as a person would read them: without escape sequences and control
// characters other than tabs, and without what a carriage return or a backspace takes back. Invalid
// UTF-8 becomes U+FFFD. The state is kept between chunks. The zero cleaner is ready to use.
//
// An escape sequence ends with its line at the latest, so that a broken one hides no more than that.
type cleaner struct {
	state   state
	partial []byte // of a character
	line    []byte // the unfinished line
	cr      bool   // the line ends with carriage returns, which take it back if more follows
}

// feed calls finished for each line that ends in b. The line is valid until finished returns.
func (c *cleaner) feed(b []byte, finished func(line []byte)) {
	for len(b) > 0 {
		ch := b[0]
		switch {
		case ch == '\n':
			c.invalid()
			finished(c.line)
			c.line, c.cr, c.state = c.line[:0], false, ground
			b = b[1:]
		case c.state != ground:
			if c.sequence(ch) {
				b = b[1:]
			}
		case ch >= utf8.RuneSelf:
			c.character(ch)
			b = b[1:]
		case ch < ' ' || ch == del:
			c.invalid()
			c.control(ch)
			b = b[1:]
		default:
			n := 1
			for n < len(b) && b[n] >= ' ' && b[n] < del {
				n++
			}
			c.invalid()
			c.add(b[:n]...)
			b = b[n:]
		}
	}
}

func (c *cleaner) add(b ...byte) {
	if c.cr {
		c.line, c.cr = c.line[:0], false
	}
	c.line = append(c.line, b...)
}

func (c *cleaner) control(ch byte) {
	switch ch {
	case '\r':
		c.cr = true
	case '\t':
		c.add(ch)
	case backspace:
		if !c.cr {
			_, n := utf8.DecodeLastRune(c.line)
			c.line = c.line[:len(c.line)-n]
		}
	case escape:
		c.state = escaped
	}
}

// sequence handles the next byte of an escape sequence. It returns false if the byte is not part of it.
func (c *cleaner) sequence(ch byte) bool {
	switch {
	case c.state == text:
		switch ch {
		case bel:
			c.state = ground
		case escape:
			c.state = escaped
		}
		return true
	case ch < ' ' || ch >= utf8.RuneSelf:
		c.state = ground
		return false
	}
	switch was := c.state; {
	case was == csi:
		if ch >= 0x40 && ch < del {
			c.state = ground
		}
	case was != intermediate && ch == '[':
		c.state = csi
	case was == escaped && (ch == ']' || ch == 'P' || ch == '^' || ch == '_' || ch == 'X'):
		c.state = text
	case ch <= '/':
		c.state = intermediate
	default:
		c.state = ground
	}
	return true
}

// character handles a byte of a character that is not ASCII.
func (c *cleaner) character(ch byte) {
	c.partial = append(c.partial, ch)
	for len(c.partial) > 0 && utf8.FullRune(c.partial) {
		r, n := utf8.DecodeRune(c.partial)
		if r < 0x80 || r >= 0xa0 { // other than the second set of control characters
			c.add([]byte(string(r))...)
		}
		c.partial = c.partial[:copy(c.partial, c.partial[n:])]
	}
}

// invalid is called when the unfinished character will not be finished.
func (c *cleaner) invalid() {
	for range c.partial {
		c.add([]byte(replacement)...)
	}
	c.partial = c.partial[:0]
}
