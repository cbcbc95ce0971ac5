package screen

import "encoding/binary"

// Text returns the text of a Screen to which output has been written.
func Text(output []byte, config Config) []byte {
	s := New(config)
	s.Write(output)
	return s.Append(nil)
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
