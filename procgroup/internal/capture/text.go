package capture

import "unicode/utf8"

// A Kept is the output of a stream: its last bytes, and how many bytes there were. The zero Kept is
// empty. It is safe for concurrent use.
type Kept struct {
	Total, Dropped int64

	data func() []byte // nil if there is none
	cut  int           // number of bytes at the end that belong to unfinished characters
}

// Bytes returns the bytes that were kept. The caller must not modify them.
func (k Kept) Bytes() []byte {
	if k.data == nil {
		return nil
	}
	return k.data()
}

// String returns the bytes that were kept as text. It omits a character at the beginning that
// the limit has cut, and a character at the end that the command had not finished writing
// when it was stopped. Other invalid UTF-8 is returned unchanged.
func (k Kept) String() string {
	b := k.Bytes()
	if k.Dropped > 0 {
		b = b[continuation(b):]
	}
	return string(b[:max(len(b)-k.cut, 0)])
}

// continuation returns how many bytes at the start of b may belong to a character that began before
// b. If no character begins after at most three such bytes, b is not UTF-8, and the result is 0.
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

// Unfinished returns how many bytes at the end of b belong to a character that is not complete.
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
