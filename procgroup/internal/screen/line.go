package screen

import (
	"fmt"
	"unicode/utf8"
)

// halfLine bounds the characters that are kept of each half of a line that is too long.
const halfLine = 1000

// A line holds the beginning and the end of a line.
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

// add adds valid text.
func (l *line) add(p []byte) {
	for len(p) > 0 {
		if n := ascii(p); n > 0 {
			l.addASCII(p[:n])
			p = p[n:]
			continue
		}
		r, n := utf8.DecodeRune(p)
		l.addRune(r)
		p = p[n:]
	}
}

// ascii returns how many bytes at the beginning of p are ASCII.
func ascii(p []byte) int {
	for i, b := range p {
		if b >= utf8.RuneSelf {
			return i
		}
	}
	return len(p)
}

func (l *line) addASCII(p []byte) {
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

// trim cuts the beginning of a tail of more than most characters.
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
