package screen

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// Text returns the text of a Screen to which output has been written.
func Text(output []byte, config Config) []byte {
	dst := make([]byte, 0, len(output))
	if dst, ok := appendPlain(dst, output, config); ok {
		return dst
	}
	s := New(config)
	s.Write(output)
	return s.Append(dst[:0])
}

// appendPlain appends the text of output without a Screen, if output has only characters that a terminal shows as they
// are. Otherwise it returns false, and may have appended a part.
func appendPlain(dst, output []byte, config Config) ([]byte, bool) {
	for len(output) > 0 {
		line, more := output, false
		if i := bytes.IndexByte(output, '\n'); i >= 0 {
			line, more = output[:i], true
		}
		output = output[min(len(line)+1, len(output)):]
		if more {
			n := len(line)
			for n > 0 && line[n-1] == '\r' {
				n--
			}
			if config.Terminal && n == len(line) {
				return dst, false
			}
			line = line[:n]
		}
		if !shownAsIs(line) {
			return dst, false
		}
		if len(line) <= 2*halfLine || config.Whole {
			dst = append(dst, line...)
		} else {
			dst = appendCut(dst, line)
		}
		if more {
			dst = append(dst, '\n')
		}
	}
	return dst, true
}

// appendCut appends a line, without its middle if it is too long.
func appendCut(dst, text []byte) []byte {
	var l line
	l.add(text)
	return l.appendTo(dst)
}

// shownAsIs reports whether p has only tabs and valid characters other than control characters.
func shownAsIs(p []byte) bool {
	for len(p) > 0 {
		n := plainLength(p)
		if p = p[n:]; len(p) == 0 {
			return true
		}
		if p[0] != '\t' {
			r, n := utf8.DecodeRune(p)
			if r < 0xa0 || r == utf8.RuneError && n == 1 {
				return false
			}
			p = p[n:]
		} else {
			p = p[1:]
		}
	}
	return true
}

// plainLength returns the number of bytes at the beginning of p that are printable ASCII characters.
func plainLength(p []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(p); n += 8 {
		x := binary.LittleEndian.Uint64(p[n:])
		y := x ^ 0x7f*ones // a byte of 0 is a DEL
		if (x|(x-' '*ones)|(y-ones)&^y)&tops != 0 {
			break
		}
	}
	for n < len(p) && p[n] >= ' ' && p[n] <= '~' {
		n++
	}
	return n
}
