package capture

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// clean is what a Cleaner makes of whole output.
func clean(p string) string {
	var c Cleaner
	return string(c.End(c.Append(nil, []byte(p))))
}

// SPEC 6.20: output as a person would have read it.
func TestCleaner(t *testing.T) {
	long := strings.Repeat("é", halfLine)
	for _, tt := range []struct{ name, output, want string }{
		{"plain", "a b\tc\n\nd", "a b\tc\n\nd"},
		{"a progress bar", " 1%\r 50%\r100%\ndone\n", "100%\ndone\n"},
		{"what is shorter replaces the line", "abc\rd\n", "d\n"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"CR CR LF", "a\r\r\nb", "a\nb"},
		{"a CR at the end", "10%\r50%\r", "50%"},
		{"a CR before an escape sequence", "50%\r\x1b[K60%\n", "60%\n"},
		{"only a CR", "\r", ""},
		{"a backspace", "abx\bc\n", "abc\n"},
		{"more backspaces than characters", "a\b\b\bb", "b"},
		{"a backspace over a wide character", "a€\bb", "ab"},
		{"a backspace after a CR", "ab\r\bc", "c"},
		{"a CR and a backspace at the end", "ab\r\b\n", "ab\n"},
		{"a backspace stays in its line", "a\n\bb", "a\nb"},
		{"overstriking", "N\bNA\bAM\bME\bE", "NAME"},
		{"an erased password prompt", "ab\b \b\b \bc", "c"},
		{"a spinner that is taken back", "a\n⠙\x1b[1G\x1b[0K⠹\x1b[`\x1b[K⠸\x1b[2K\nb", "a\n\nb"},
		{"a prompt that is drawn again", "? Na\x1b[2K\x1b[G? Name \x1b[8G", "? Name "},
		{"readline", "\x1b[1G\x1b[0J> \x1b[3G", "> "},
		{"an erased line", "ab\x1b[2Kc", "c"},
		{"the rest of a line is erased", "ab\x1b[Kc\x1b[0Jd", "abcd"},
		{"grep --color in a file with CRLF", "a \x1b[01;31m\x1b[Kfoo\x1b[m\x1b[K b\r\x1b[m\x1b[K\n", "a foo b\n"},
		{"other columns and erasures", "ab\x1b[10G\x1b[01;1Gc\x1b[?1K\x1b[22Kd\x1b[1 Ge", "abcde"},
		{"colours", "\x1b[1;31mred\x1b[0m\x1b(B", "red"},
		{"a title and a link", "\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"},
		{"a string with a character in it", "\x1b]0;é\x07a", "a"},
		{"a string ended by another sequence", "\x1b]0;t\x1b[31ma", "a"},
		{"one escape after another", "\x1b\x1b[31ma", "a"},
		{"a cancelled sequence", "\x1b[3\x18a\x1b]0;t\x1ab", "ab"},
		{"a control character within a sequence", "\x1b[3\x011ma", "a"},
		{"an unfinished sequence ends with the line", "a\x1b[3\nb\x1b]0;t\nc\x1b\nd", "a\nb\nc\nd"},
		{"a sequence that is none", "\x1b[3é\x1b€", "é€"},
		{"other controls", "a\x00\x01\x07\v\f\x7f\u0085\u009bb", "ab"},
		{"not UTF-8", "a\xffb\xe2\x82c\xc3\n\xf0\x9f", "a\ufffdb\ufffd\ufffdc\ufffd\n\ufffd\ufffd"},
		{"a control in a character", "\xe2\x1b[31ma\xe2\r\n", "\ufffda\ufffd\n"},
		{"2000 characters", long + long, long + long},
		{"2001 characters", long + "x" + long + "\n", long + " [1 character left out] " + long + "\n"},
		{"many characters", "ab" + strings.Repeat("x", 9995) + "cde\n", "ab" + strings.Repeat("x", 998) + " [8000 characters left out] " + strings.Repeat("x", 997) + "cde\n"},
		{"a long line that is taken back", strings.Repeat("x", 9999) + "\rshort\n", "short\n"},
		{"backspaces in a long line", strings.Repeat("x", 9999) + strings.Repeat("\b", 9998), "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := clean(tt.output); got != tt.want {
				t.Errorf("%q becomes\n%q, want\n%q", tt.output, got, tt.want)
			}
		})
	}
}

// Lines are given out as they end, and not before.
func TestCleanerGivesWholeLines(t *testing.T) {
	var c Cleaner
	var got []string
	for _, p := range []string{"a", "b\nc", "\rd", "\r", "\n", "e\nf\n"} {
		got = append(got, string(c.Append(nil, []byte(p))))
	}
	if all := strings.Join(got, "|"); all != "|ab\n|||d\n|e\nf\n" {
		t.Error(all)
	}
}

// The memory of a Cleaner does not depend on the length of a line.
func TestCleanerOfAnEndlessLine(t *testing.T) {
	var c Cleaner
	p := []byte(strings.Repeat("xyz€", 10_000))
	for range 100 {
		if out := c.Append(nil, p); len(out) > 0 {
			t.Fatalf("%q", out)
		}
	}
	if n := cap(c.line.head.text) + cap(c.line.tail.text); n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
	if c.trimmed(); c.line.left != 4_000_000-2*halfLine {
		t.Errorf("%d characters left out", c.line.left)
	}
}

func (c *Cleaner) trimmed() { c.line.trim(halfLine) }

func TestPlainPrompt(t *testing.T) {
	for line, want := range map[string]string{
		"Password: ": "Password:", "\x1b[1mGo on?\x1b[0m [y/N]\t": "Go on? [y/N]", "50%\r": "", "50%\rName:": "Name:",
		"⠙\x1b[1G\x1b[0K": "", "⠙\x1b[2K": "", "\x1b[1G\x1b[0J> \x1b[3G": ">",
		strings.Repeat("x", 300) + "?": strings.Repeat("x", maxPromptRunes-1) + "?",
	} {
		if got := plain([]byte(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// SPEC 6.20: the result is valid UTF-8 without control characters, in lines that are not too
// long, and does not depend on the chunks. As many lines come out as went in.
func FuzzCleaner(f *testing.F) {
	f.Add([]byte("a\r\nb\x1b[31mé\bc\xff"), uint8(1))
	f.Add([]byte("\x1b]0;t\x1b\\x\r50%\r"), uint8(2))
	f.Add([]byte(strings.Repeat("x€", 1500)+"\b\b\n\xe2\x82"), uint8(3))
	f.Fuzz(func(t *testing.T, p []byte, size uint8) {
		var whole, parts Cleaner
		want := whole.End(whole.Append(nil, p))
		var got []byte
		for rest := p; len(rest) > 0; {
			n := min(1+int(size), len(rest))
			got = parts.Append(got, rest[:n])
			rest = rest[n:]
		}
		got = parts.End(got)
		if !bytes.Equal(got, want) {
			t.Fatalf("in chunks %q\nat once   %q", got, want)
		}
		if !utf8.Valid(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		if bytes.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("control characters: %q", got)
		}
		if bytes.Count(got, []byte("\n")) != bytes.Count(p, []byte("\n")) {
			t.Fatalf("lines are missing, or new: %q", got)
		}
		for line := range bytes.Lines(got) {
			if n := utf8.RuneCount(line); n > 2*halfLine+60 {
				t.Fatalf("a line of %d characters", n)
			}
		}
		// Text that has nothing to clean is unchanged.
		if again := clean(string(got)); !strings.Contains(string(got), "left out") && again != string(got) {
			t.Fatalf("%q becomes %q", got, again)
		}
	})
}

func BenchmarkCleaner(b *testing.B) {
	for name, text := range map[string]string{
		"text":     strings.Repeat("procgroup/internal/capture/clean.go:42: something that a compiler says\n", 1000),
		"progress": strings.Repeat("\x1b[2K\r[=====>    ] 50 % é", 2000),
	} {
		b.Run(name, func(b *testing.B) {
			var c Cleaner
			var out []byte
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				out = c.Append(out[:0], []byte(text))
			}
		})
	}
}
