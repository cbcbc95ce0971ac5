package kept

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// An Output is the output of a stream: its first and its last bytes, and how many bytes there were. The
// zero Output is empty. It is safe for concurrent use.
type Output struct {
	Total        int64
	Dropped      int64 // bytes between the head and the tail
	DroppedLines int64 // number of line ends among them, if a head was kept

	data      func() []byte // the head and the tail; nil if there is none
	head      int           // number of bytes of the head
	lineStart bool          // the tail begins with a line, if bytes were dropped before it
	cut       int           // number of bytes at the end that belong to unfinished characters
	shown     screen.Config // the screen on which a person would have read it
}

// newOutput makes an Output from its head and its tail. lines is the number of all line ends, if there is a head.
// The tail may have one byte more than max, which shows whether a line begins after it.
func newOutput(total, lines int64, head, tail []byte, max int) Output {
	k := Output{Total: total, head: len(head)}
	if len(tail) > max {
		k.lineStart = tail[0] == '\n'
		tail = tail[1:]
	}
	all := tail
	if len(head) > 0 {
		all = append(head[:len(head):len(head)], tail...)
	}
	k.data = func() []byte { return all }
	if k.Dropped = total - int64(len(all)); k.Dropped > 0 && k.head > 0 {
		k.DroppedLines = lines - countLines(all)
	}
	return k
}

// Beginning returns an Output of which only the head was kept. lines is the number of all line ends.
func Beginning(total, lines int64, head []byte) Output { return newOutput(total, lines, head, nil, 0) }

func countLines(p []byte) int64 { return int64(bytes.Count(p, newline)) }

var newline = []byte{'\n'}

// Bytes returns the bytes that were kept: the head, then the tail. The caller must not modify them.
func (k Output) Bytes() []byte {
	if k.data == nil {
		return nil
	}
	return k.data()
}

// String returns the bytes that were kept as text. It omits a character at the beginning that
// the limit has cut, and a character at the end that the command had not finished writing
// when it was stopped. Other invalid UTF-8 is returned unchanged. Between a head and a tail, which
// it cuts at line ends where there are any, it says how much is left out.
func (k Output) String() string {
	if k.head == 0 {
		b := k.Bytes()
		if k.Dropped > 0 {
			b = b[continuation(b):]
		}
		return string(b[:max(len(b)-k.cut, 0)])
	}
	head, tail, left := k.parts()
	return string(joined(head, tail, left))
}

// Text returns the output as a person would have read it; see package screen. The bytes that were dropped, and those
// that are left of the lines that were cut, are counted in a separate line. What follows it begins at the bottom of a
// screen of which no more is known.
func (k Output) Text() string {
	head, tail, left := k.parts()
	if left == "" {
		return string(screen.Text(tail, k.shown))
	}
	cut := k.shown
	cut.Cut = true
	return string(joined(screen.Text(head, k.shown), screen.Text(tail, cut), left))
}

// parts returns the head and the tail, cut at line ends where there are any, and otherwise between
// characters, and a line about what is left out between them. If nothing is left out, all of the
// output is in the tail.
func (k Output) parts() (head, tail []byte, left string) {
	b := k.Bytes()
	all := b
	b = b[:max(len(b)-k.cut, 0)]
	if k.Dropped == 0 {
		return nil, b, ""
	}
	at := min(k.head, len(b))
	head, tail = b[:at], b[at:]
	if i := bytes.LastIndexByte(head, '\n'); i >= 0 {
		head = head[:i+1]
	} else {
		head = head[:len(head)-Unfinished(head)]
	}
	if !k.lineStart {
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
			tail = tail[i+1:]
		} else {
			tail = tail[continuation(tail):]
		}
	}
	// What the cuts have removed was kept, and is left out all the same.
	between := all[len(head) : len(b)-len(tail)]
	left = count(k.Dropped+int64(len(between)), "byte")
	if lines := k.DroppedLines + countLines(between); lines > 0 && k.head > 0 {
		left = count(lines, "line") + ", " + left
	}
	return head, tail, fmt.Sprintf("[%s left out]\n", left)
}

// joined puts head, left and tail together. left begins a line.
func joined(head, tail []byte, left string) []byte {
	if left == "" {
		return tail
	}
	if n := len(head); n > 0 && head[n-1] != '\n' {
		left = "\n" + left
	}
	return append(append(head[:len(head):len(head)], left...), tail...)
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

// count returns n with its unit, such as "1 line" or "2 lines".
func count(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
