package screen_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// half is how many characters are kept of each half of a line that is too long.
const half = 1000

func text(p string, config screen.Config) string { return string(screen.Text([]byte(p), config)) }

// SPEC 6.20, 6.30: output as a person would have read it.
func TestText(t *testing.T) {
	long := strings.Repeat("é", half)
	frames := func(begin, frame string) string {
		var b strings.Builder
		for i := range 200 {
			if i > 0 {
				b.WriteString(begin)
			}
			fmt.Fprintf(&b, frame, i, i, i)
		}
		return b.String()
	}
	for _, tt := range []struct{ name, output, want string }{
		{"plain", "a b\tc\n\nd", "a b\tc\n\nd"},
		{"blanks at the end of a line", "a  \n\t\nName? ", "a  \n\t\nName? "},
		{"a progress bar", " 1%\r 50%\r100%\ndone\n", "100%\ndone\n"},
		{"what is shorter replaces only the beginning", "abc\rd\n", "dbc\n"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"CR CR LF", "a\r\r\nb", "a\nb"},
		{"a CR at the end", "10%\r50%\r", "50%"},
		{"a CR before an escape sequence", "50% of it\r\x1b[K60%\n", "60%\n"},
		{"only a CR", "\r", ""},
		{"a backspace", "abx\bc\n", "abc\n"},
		{"more backspaces than characters", "a\b\b\bb", "b"},
		{"a backspace over a character of three bytes", "a€\bb", "ab"},
		{"a backspace after a CR", "ab\r\bc", "cb"},
		{"a backspace stays in its line", "a\n\bb", "a\nb"},
		{"overstriking", "N\bNA\bAM\bME\bE", "NAME"},
		{"an erased password prompt", "ab\b \b\b \bc", "c"},
		{"a spinner that is taken back", "a\n⠙\x1b[1G\x1b[0K⠹\x1b[`\x1b[K⠸\x1b[2K\nb", "a\n\nb"},
		{"a prompt that is drawn again", "? Na\x1b[2K\x1b[G? Name \x1b[8G", "? Name "},
		{"readline", "\x1b[1G\x1b[0J> \x1b[3G", "> "},
		{"an erased line", "ab\x1b[2Kc", "  c"},
		{"the rest of a line is erased", "abcd\x1b[2D\x1b[Ke", "abe"},
		{"the beginning of a line is erased", "abcd\x1b[2D\x1b[1Ke", "  ed"},
		{"characters are erased, deleted and inserted", "abcdef\x1b[1G\x1b[2X\x1b[3G\x1b[P\x1b[@x\n", "  xdef\n"},
		{"insert mode", "ab\r\x1b[4hx\x1b[4ly", "xyb"},
		{"no wrapping", "\x1b[?7l" + strings.Repeat("a", 90) + "b\n", strings.Repeat("a", 79) + "b\n"},
		{"a character that is repeated", "-\x1b[4b\n", "-----\n"},
		{"grep --color", "a \x1b[01;31m\x1b[Kfoo\x1b[m\x1b[K b\n", "a foo b\n"},
		{"grep --color in a line that fills its row", strings.Repeat("x", 77) + "\x1b[01;31m\x1b[Kfoo\x1b[m\x1b[K\n", strings.Repeat("x", 77) + "foo\n"},
		{"grep --color in a file with CRLF", "a \x1b[01;31m\x1b[Kfoo\x1b[m\x1b[K b\r\x1b[m\x1b[K\n", "a foo b\n"},
		{"the same, and more follows", "a b\r\x1b[m\x1b[Kc", "c"},
		{"the same, at the end", "a b\r\x1b[m\x1b[K", ""},
		{"columns", "ab\x1b[6Gc\x1b[2Dd\x1b[Ce\x1b[1;2Hf\n", "af  dce\n"},
		{"colours", "\x1b[1;31mred\x1b[0m\x1b(B", "red"},
		{"a title and a link", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"},
		{"a string with a character in it", "\x1b]0;é\x07a", "a"},
		{"a string ended by another sequence", "\x1b]0;t\x1b[31ma", "a"},
		{"one escape after another", "\x1b\x1b[31ma", "a"},
		{"a cancelled sequence", "\x1b[3\x18a\x1b]0;t\x1ab", "ab"},
		{"a control character within a sequence", "\x1b[3\x011ma", "a"},
		{"a carriage return within a sequence", "abc\x1b[3\r1md", "dbc"},
		{"an unfinished sequence ends with the line", "a\x1b[3\nb\x1b]0;t\nc\x1b\nd", "a\nb\nc\nd"},
		{"a sequence that is none", "\x1b[3é\x1b€", "é€"},
		{"sequences of others", "a\x1b[>4;2m\x1b[=1u\x1b[<u\x1b[?u\x1b[>q\x1b[2 q\x1b[?2004h\x1b[c\x1b[6n\x1b#8\x1b=b", "ab"},
		{"other controls", "a\x00\x01\x07\x7f\u0085\u009bb", "ab"},
		{"a form feed", "a\fb\v\n", "a\n b\n\n"},
		{"not UTF-8", "a\xffb\xe2\x82c\xc3\n\xf0\x9f", "a\ufffdb\ufffd\ufffdc\ufffd\n\ufffd\ufffd"},
		{"a control in a character", "\xe2\x1b[31ma\xe2\r\n", "\ufffda\ufffd\n"},
		{"2000 characters", long + long, long + long},
		{"2001 characters", long + "x" + long + "\n", long + " [1 character left out] " + long + "\n"},
		{"many characters", "ab" + strings.Repeat("x", 9995) + "cde\n", "ab" + strings.Repeat("x", 998) + " [8000 characters left out] " + strings.Repeat("x", 997) + "cde\n"},
		{"the same in colour", "\x1b[31mab" + strings.Repeat("x", 9995) + "cde\n", "ab" + strings.Repeat("x", 998) + " [8000 characters left out] " + strings.Repeat("x", 997) + "cde\n"},
		{"a status line that is wider than a terminal", strings.Repeat("x", 100) + "\r" + strings.Repeat("y", 100) + "\r", strings.Repeat("y", 100)},
		{"the same, erased first", strings.Repeat("x", 100) + "\r\x1b[Ky\r\x1b[K" + strings.Repeat("z", 90) + "\x1b[2K\rdone\nnext\n", "done\nnext\n"},
		{"CRLF after a line of several rows", strings.Repeat("x", 100) + "\r\n" + strings.Repeat("y", 100) + "\r\x1b[m\n\x1b[31mz\n", strings.Repeat("x", 100) + "\n" + strings.Repeat("y", 100) + "\nz\n"},
		{"a line of several rows, and cursor movement", strings.Repeat("x", 100) + "\n\x1b[2Ay\n", "y" + strings.Repeat("x", 99) + "\n"},

		{"three lines that are drawn again", "start\n" + frames("\x1b[3A", "a%d\nb%d\nc%d\n"), "start\na199\nb199\nc199\n"},
		{"lines that are erased and drawn again", "start\n" + frames("\x1b[3A\x1b[J", "a%d\nb%d\nc%d\n"), "start\na199\nb199\nc199\n"},
		{"lines that are erased one by one", "start\n" + frames("\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K", "a%d\nb%d\nc%d\n"), "start\na199\nb199\nc199\n"},
		{"lines between a saved and a restored cursor", "start\n\x1b7" + frames("\x1b8\x1b[J", "a%d\nb%d\nc%d\n"), "start\na199\nb199\nc199\n"},
		{"lines that are taken back", "start\na\nb\n\x1b[1A\x1b[2K\x1b[1A\x1b[2K", "start\n"},
		{"lines below a line that is taken back", "a\nb\nc\x1b[1F\x1b[Mdone\n", "a\ndone\n"},
		{"a display that is cleared", "a\n" + frames("\x1b[H\x1b[2J", "b%d\nc%d\nd%d\n"), "b199\nc199\nd199\n"},
		{"a full reset", "a\nb\n\x1bcc\n", "c\n"},
		{"a display on the alternate screen", "a\n\x1b[?1049h" + frames("\x1b[H", "b%d\nc%d\nd%d\n") + "\x1b[?1049le\n", "a\ne\n"},
		{"the alternate screen at the end", "a\n\x1b[?1049h\x1b[2J\x1b[Hb\nc", "a\nb\nc"},
		{"what scrolls on the alternate screen is not kept", "a\n\x1b[?1049h" + strings.Repeat("b\n", 100) + "\x1b[?1049lc\n", "a\nc\n"},
		{"the alternate screen is left twice", "a\n\x1b[?1049h\x1b[?1049l\x1b[?1049lb\n", "a\nb\n"},
		{"the alternate screens of old", "a\n\x1b[?47hb\x1b[?47l\rc\n\x1b[?1047hd\x1b[?1047l\re\n", "a\nc\ne\n"},
		{"lines above what is drawn again are kept once", strings.Repeat("log\n", 50) + frames("\x1b[3A", "a%d\nb%d\nc%d\n"), strings.Repeat("log\n", 50) + "a199\nb199\nc199\n"},
		{"log lines above a status line", "status\r\x1b[Kone\nstatus\r\x1b[Ktwo\nstatus", "one\ntwo\nstatus"},
		{"a status line below a scroll region", "\x1b[1;23r\x1b7\x1b[24;1Hbar\x1b8" + strings.Repeat("log\n", 30), strings.Repeat("log\n", 30) + "\nbar"},
		{"a reverse line feed", "a\nb\x1bM\x1bMc\n", " c\na\nb"},
		{"rows that are inserted", "a\nb\n\x1b[2A\x1b[Lc\n", "c\na\nb\n"},
		{"a screen that scrolls by itself", "a\nb\nc\x1b[2S\n", "a\nb\nc\n\n\n"},
		{"a position", "\x1b[2J\x1b[3;5Hx\x1b[Hy", "y\n\n    x"},
		{"a position far outside", "\x1b[999999999B\x1b[999999999Cx\x1b[99999999999999999999999A\x1b[999999999Dy", "y" + strings.Repeat("\n", 23) + strings.Repeat(" ", 79) + "x"},
		{"origin mode", "\x1b[5;10r\x1b[?6h\x1b[1;1Hx\x1b[?6l\x1b[1;1Hy", "y\n\n\n\nx"},
		{"line drawing", "\x1b(0lqk\x1b(B\n\x1b)0\x0ex\x0fx\n", "┌─┐\n│x\n"},
		{"tabs", "a\tb\n\x1b[31ma\t\tb\x1b[0m\n", "a\tb\na\t\tb\n"},
		{"a tab moves over what is there", "abcdefghijk\r\tX\n", "abcdefghXjk\n"},
		{"half a tab", "a\tb\r\x1b[3Cx\n", "a  x    b\n"},
		{"tabs in a line of several rows", "\x1b[m" + strings.Repeat("abcdefg\t1\t", 30) + "\n", strings.Repeat("abcdefg\t1\t", 30) + "\n"},
		{"wide characters", "日本語\r\x1b[4Cx\n", "日本x\n"},
		{"half a wide character", "日本\r\x1b[Cx\n", " x本\n"},
		{"a wide character at the end of a row", "\x1b[m" + strings.Repeat("x", 79) + "日本\n", strings.Repeat("x", 79) + "日本\n"},
		{"combining marks", "e\u0301a\r\x1b[Cb\n\u0301", "e\u0301b\n\u0301"},
		{"a mark on what is drawn over", "abc\r\x1b[Cx\u0301\n", "ax\u0301c\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(tt.output, screen.Config{}); got != tt.want {
				t.Errorf("%.300q becomes\n%q, want\n%q", tt.output, got, tt.want)
			}
		})
	}
}

// SPEC 6.30: on a terminal of a size, a line feed does not return to the first column.
func TestTextOnATerminal(t *testing.T) {
	small := screen.Config{Rows: 3, Cols: 5, Terminal: true}
	for _, tt := range []struct{ name, output, want string }{
		{"lines", "a\r\nb\r\n", "a\nb\n"},
		{"a program that wants no carriage return", "a\nb", "a\n b"},
		{"a line of several rows", "abcdefgh\r\n", "abcdefgh\n"},
		{"a carriage return goes to the beginning of the row", "abcdefgh\rx\r\n", "abcdexgh\n"},
		{"lines that have scrolled away", "1\r\n2\r\n3\r\n4\r\n\x1b[9Ax", "1\n2\nx\n4\n"},
		{"a line that scrolls away while it is written", "abcdefghijklmnopqrstuvw\r\n", "abcdefghijklmnopqrstuvw\n"},
		{"the last column", "\x1b[9;9Hx", "\n\n    x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(tt.output, small); got != tt.want {
				t.Errorf("%q becomes\n%q, want\n%q", tt.output, got, tt.want)
			}
		})
	}
}

// SPEC 6.30: what follows a part of the output that is not known stands at the bottom of the screen.
func TestTextAfterACut(t *testing.T) {
	for _, tt := range []struct{ name, output, want string }{
		{"lines", "a\n\nb", "a\n\nb"},
		{"a frame of which the beginning is missing", "2\n3\n\x1b[3Aa\nb\nc\n", "a\nb\nc\n"},
		{"a position", "a\x1b[2;2Hb", " b\na"},
		{"the alternate screen is left", "\x1b[2;2Hframe\x1b[5;5Hframe\x1b[?1049ldone\n", "done\n"},
		{"a cleared screen", "a\x1b[2J\x1b[Hb\n", "b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(tt.output, screen.Config{Cut: true}); got != tt.want {
				t.Errorf("%q becomes\n%q, want\n%q", tt.output, got, tt.want)
			}
		})
	}
}

// SPEC 6.18: the prompt is the line of the cursor up to the cursor.
func TestLine(t *testing.T) {
	for output, want := range map[string]string{
		"Password: ": "Password: ", "\x1b[1mGo on?\x1b[0m [y/N]\t": "Go on? [y/N]\t", "50%\r": "", "50%\rName:": "Name:",
		"⠙\x1b[1G\x1b[0K": "", "⠙\x1b[2K": "", "\x1b[1G\x1b[0J> \x1b[3G": "> ", "Name?\n": "",
		"? Pick one\n> a\n  b\x1b[2A\x1b[11G": "? Pick one", "Code: [____]\x1b[5D": "Code: [",
	} {
		s := screen.New(screen.Config{})
		s.Write([]byte(output))
		if got := string(s.Line()); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// SPEC 15.3: after a mark, there is what has changed since.
func TestMark(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"nothing", "a\nb", "", ""},
		{"more of a line", "a\nb ", "c\nd", "c\nd"},
		{"the end of a line", "a\nb", "\n", "\n"},
		{"a line that is drawn again", "a\nb", "\rcd", "cd"},
		{"lines that are drawn again", "log\na\nb\nc\n", "\x1b[3Aa2\nb\x1b[2Bd\n", "a2\nb\n d\n"},
		{"a combining mark", "e", "\u0301\n", "\u0301\n"},
		{"rows that scroll away", strings.Repeat("a\n", 30), strings.Repeat("b\n", 30), strings.Repeat("b\n", 30)},
		{"a line that is longer than the screen", "a", strings.Repeat("b", 3000), strings.Repeat("b", 1000) + " [1000 characters left out] " + strings.Repeat("b", 1000)},
		{"the alternate screen", "a\n", "\x1b[?1049h\x1b[Hb\n", "b\n"},
		{"on the alternate screen", "a\n\x1b[?1049h\x1b[Hb\nc\n", "\x1b[Hd", "d\n"},
		{"from the alternate screen", "a\n\x1b[?1049h\x1b[Hb\nc\n", "\x1b[?1049le\n", "e\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := screen.New(screen.Config{})
			s.Write([]byte(tt.before))
			s.Mark()
			s.Write([]byte(tt.after))
			if got := string(s.Append(nil)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// SPEC 6.30: whatever is written, a step is small, and the memory and the text are bounded.
func TestHostileOutput(t *testing.T) {
	for _, hostile := range []string{
		"\x1b[999999999B", "\x1b[999999999C", "\x1b[999999999S", "\x1b[999999999T", "\x1b[999999999L", "\x1b[999999999M",
		"\x1b[999999999P", "\x1b[999999999@", "\x1b[999999999X", "x\x1b[999999999b", "\x1b[999999999I", "\x1b[999999999Z",
		"\x1b[9999;9999Hx", "\x1b[9999;9999Hx\n", "\x1b[2J", "\x1b[?1049h", "\x1b[?1049hx\x1b[?1049l", "\x1bc", "\u0301", "x\r\u0301",
		"\x1b[1;1;1;1;1;1;1;1;1;1;1;1m", "\x1b]0;", "\x1bM", "\n\x1bM", "日\b",
	} {
		for size, config := range map[int]screen.Config{
			50 << 10: {}, 5 << 10: {Rows: math.MaxInt, Cols: math.MaxInt, Terminal: true}, // whose steps are 200 times as large
		} {
			if n := len(text(strings.Repeat(hostile, size/len(hostile)), config)); n > 500*size {
				t.Errorf("%q becomes %d bytes", hostile, n)
			}
		}
	}
}

// SPEC 6.20: the result is valid UTF-8 without control characters, in lines that are not too
// long, and does not depend on the chunks.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31mé\bc\xff"), uint8(1))
	f.Add([]byte("\x1b]0;t\x1b\\x\r50%\r"), uint8(2))
	f.Add([]byte(strings.Repeat("x€", 1500)+"\b\b\n\xe2\x82"), uint8(3))
	f.Add([]byte("a\n\x1b[1A\x1b[2K\x1b7\x1b[3;4Hx\x1b8\x1b[?1049h\x1b[2;3r\x1b[5L\x1b[M\x1bM\x1b[2P\x1b[@\x1b[X\x1b[?1049l\t日e\u0301"), uint8(4))
	f.Fuzz(func(t *testing.T, p []byte, size uint8) {
		config := screen.Config{Rows: int(size % 5), Cols: int(size % 7), Terminal: size%2 == 0, Cut: size%3 == 0}
		want := screen.Text(p, config)
		parts := screen.New(config)
		for rest := p; len(rest) > 0; {
			n := min(1+int(size), len(rest))
			parts.Write(rest[:n])
			rest = rest[n:]
		}
		if got := parts.Append(nil); !bytes.Equal(got, want) {
			t.Fatalf("in chunks %q\nat once   %q", got, want)
		}
		if !utf8.Valid(want) {
			t.Fatalf("not UTF-8: %q", want)
		}
		if bytes.ContainsFunc(want, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("control characters: %q", want)
		}
		for line := range bytes.Lines(want) {
			if n := utf8.RuneCount(line); n > 2*half+60 {
				t.Fatalf("a line of %d characters", n)
			}
		}
	})
}
