package screen

import (
	"fmt"
	"unicode/utf8"
)

// halfLine is the number of characters that are kept at each end of a line that is too long.
const halfLine = 1000

// A line is a line of text, without the middle if the line is too long.
type line struct {
	head, tail part
	left       int // number of characters left out between head and tail
}

// A part is text and the number of characters in it.
type part struct {
	text  []byte
	runes int
}

func (l *line) reset() {
	l.head = part{text: l.head.text[:0]}
	l.tail = part{text: l.tail.text[:0]}
	l.left = 0
}

// add appends p, which must be valid UTF-8.
func (l *line) add(p []byte) {
	for len(p) > 0 {
		_, n := utf8.DecodeRune(p)
		to := &l.tail
		if l.head.runes < halfLine {
			to = &l.head
		}
		to.text = append(to.text, p[:n]...)
		to.runes++
		l.trim(2 * halfLine)
		p = p[n:]
	}
}

// trim leaves out all but the last halfLine characters of the tail, if it has more than most characters.
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

func (l *line) appendTo(dst []byte) []byte {
	l.trim(halfLine)
	dst = append(dst, l.head.text...)
	switch l.left {
	case 0:
	case 1:
		dst = append(dst, " [1 character left out] "...)
	default:
		dst = fmt.Appendf(dst, " [%d characters left out] ", l.left)
	}
	return append(dst, l.tail.text...)
}
