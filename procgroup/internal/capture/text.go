package capture

import "unicode/utf8"

// A Kept is what was kept of a stream: its last bytes, and how many there were. The zero
// value is nothing. It is safe for concurrent use.
type Kept struct {
	Total, Dropped int64

	data func() []byte // nil is nothing
	cut  int           // so many bytes at the end begin characters that never ended
}

// Bytes returns the bytes that were kept. They must not be changed.
func (k Kept) Bytes() []byte {
	if k.data == nil {
		return nil
	}
	return k.data()
}

// String returns the bytes that were kept as text. A character that lost its beginning to
// the limit, or its end because the command was stopped while writing it, is left out.
// What is not UTF-8 for any other reason is as it came.
func (k Kept) String() string {
	b := k.Bytes()
	if k.Dropped > 0 {
		b = b[continuation(b):]
	}
	return string(b[:max(len(b)-k.cut, 0)])
}

// continuation is how many bytes at the start of b may belong to a character that began
// before it. If no character begins where it then would have to, b is not UTF-8, and
// all of it is kept.
func continuation(b []byte) int {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	if len(b) < utf8.UTFMax {
		return len(b)
	}
	return 0
}

// Unfinished is how many bytes at the end of b begin a character that b does not end.
func Unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
