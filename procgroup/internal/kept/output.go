package kept

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// An Output is what was kept of a stream, or of both: a head, which is its first bytes, and a tail, its last bytes.
// Either may be empty. The zero Output is empty. An Output is safe for concurrent use.
type Output struct {
	Total        int64 // bytes of the stream, whether kept or not
	Dropped      int64 // bytes between the head and the tail
	DroppedLines int64 // line ends in the dropped bytes; 0 without a head

	data      func() []byte // returns the head followed by the tail; nil if both are empty
	head      int           // number of bytes of the head
	lineStart bool          // the tail is known to begin with a line, although bytes were dropped before it
	cut       int           // number of bytes at the end that belong to unfinished characters
	shown     screen.Config // the screen that Text renders
}

// newOutput makes an Output from its head and its tail. lines is the number of line ends in the whole stream; it is not
// used without a head. A tail of more than max bytes begins with one byte that is not kept: it only shows whether a
// line begins after it.
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

// Beginning returns an Output of a stream of which only the head was kept. total and lines are the numbers of bytes and
// of line ends in the stream.
func Beginning(total, lines int64, head []byte) Output { return newOutput(total, lines, head, nil, 0) }

func countLines(p []byte) int64 { return int64(bytes.Count(p, newline)) }

var newline = []byte{'\n'}

// Bytes returns the head followed by the tail. The caller must not modify them.
func (k Output) Bytes() []byte {
	if k.data == nil {
		return nil
	}
	return k.data()
}

// String returns the bytes that were kept as text. It omits the rest of a character at the beginning of which the first
// bytes were dropped, and a character at the end that the command had not finished writing when it was stopped. Other
// invalid UTF-8 stays unchanged. If bytes were dropped after a head, String cuts the head and the tail at line ends
// where there are any, and inserts a line that says how much is left out.
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

// Text returns the output as a person would have read it; see package screen. If bytes were dropped, Text cuts the head
// and the tail at line ends where there are any, renders each separately, and inserts a line that says how much is left
// out.
func (k Output) Text() string {
	head, tail, left := k.parts()
	if left == "" {
		return string(screen.Text(tail, k.shown))
	}
	cut := k.shown
	cut.Cut = true
	return string(joined(screen.Text(head, k.shown), screen.Text(tail, cut), left))
}

// parts returns the head and the tail, cut at line ends where there are any, and otherwise between characters. left is
// a line that says how much is left out between them. If nothing was dropped, the tail has all of the output, and left
// is "".
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
	// The bytes that the cuts have removed were kept, and are left out, too.
	between := all[len(head) : len(b)-len(tail)]
	left = count(k.Dropped+int64(len(between)), "byte")
	if lines := k.DroppedLines + countLines(between); lines > 0 && k.head > 0 {
		left = count(lines, "line") + ", " + left
	}
	return head, tail, fmt.Sprintf("[%s left out]\n", left)
}

// joined returns head, left and tail, one after the other. It puts left on a line of its own.
func joined(head, tail []byte, left string) []byte {
	if left == "" {
		return tail
	}
	if n := len(head); n > 0 && head[n-1] != '\n' {
		left = "\n" + left
	}
	return append(append(head[:len(head):len(head)], left...), tail...)
}

// continuation returns how many bytes at the start of b may belong to a character that began before b. If no character
// begins after at most three such bytes, b is not UTF-8, and the result is 0.
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
