package transcript_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
)

// SPEC 15.3: output as a person would read it, of which package screen has the rules.
func TestReadText(t *testing.T) {
	for _, tt := range []struct{ name, raw, text string }{
		{"nothing", "", ""},
		{"a prompt", "one\nName? ", "one\nName? "},
		{"those of a terminal in raw mode", "one\r\r\ntwo\r", "one\ntwo"},
		{"a progress bar that goes on", "10 %\r50 %\r", "50 %"},
		{"three lines that are drawn again", "a\nb\nc\n\x1b[3Ad\ne\nf\n", "d\ne\nf\n"},
		{"a title that never ends", "\x1b]0;sh $ \nnext\n", "\nnext\n"},
		{"no UTF-8", "caf\xe9\n\xff\xfe", "caf\ufffd\n\ufffd\ufffd"},
		{"a cut character at the end", "x\xe6\x97", "x\ufffd\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := transcript.New(1 << 20)
			_, _ = l.Write([]byte(tt.raw))
			l.End()
			if got := l.ReadText(0, 0); string(got.Data) != tt.text || !got.Last || got.Next != int64(len(tt.raw)) || got.Dropped != 0 {
				t.Errorf("%q: %q, %+v; want %q", tt.raw, got.Data, got, tt.text)
			}
		})
	}
}

// SPEC 15.3: an unfinished character is not invalid while more may come.
func TestReadTextBeforeTheEnd(t *testing.T) {
	l := transcript.New(100)
	_, _ = l.Write([]byte("x\xe6\x97\x1b[3"))
	if got := l.ReadText(0, 3); string(got.Data) != "x" || got.Next != 3 {
		t.Errorf("%q, %+v", got.Data, got)
	}
	_, _ = l.Write([]byte("1mred"))
	if got := l.ReadText(6, 0); string(got.Data) != "red" {
		t.Errorf("%q, %+v", got.Data, got)
	}
}

// SPEC 15.3: a sequence that the bound has cut does not show, as far as it can be told.
func TestReadTextAfterADrop(t *testing.T) {
	l := transcript.New(4)
	_, _ = l.Write([]byte("日本\n"))
	if got := l.ReadText(0, 0); string(got.Data) != "本\n" || got.Dropped != 3 {
		t.Errorf("%q, %+v", got.Data, got)
	}
	_, _ = l.Write([]byte("x"))
	if got := l.ReadText(3, 0); string(got.Data) != "\nx" || got.Dropped != 1 {
		t.Errorf("%q, %+v", got.Data, got)
	}
}

// pieces cuts b into pieces of the sizes.
func pieces(b, sizes []byte) (all [][]byte) {
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if i < len(sizes) {
			n = min(int(sizes[i])+1, n)
		}
		all, b = append(all, b[:n]), b[n:]
	}
	return all
}

// Whatever is written and however it is cut: text is valid, has no control characters, and is the same
// for one reader as for one who reads in pieces, unless a line is taken back.
func FuzzReadText(f *testing.F) {
	f.Add([]byte("\x1b[1;31mred\x1b[0m\n"), []byte{0, 1, 2, 3})
	f.Add([]byte("10 %\r50 %\r\n日本\xff\b\x1b]0;t\x07x"), []byte{})
	f.Add([]byte("\x1b(B\x1b]0;a\x1b\\日本🎉 \xe6\x97"), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw, sizes []byte) {
		if len(raw) > lookBack {
			raw = raw[:lookBack]
		}
		whole, cut := transcript.New(1<<20), transcript.New(1<<20)
		_, _ = whole.Write(raw)
		whole.End()
		want := whole.ReadText(0, 0).Data
		if !utf8.Valid(want) {
			t.Errorf("%q: %q is not valid", raw, want)
		}
		for _, r := range string(want) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Errorf("%q: %q has control characters", raw, want)
			}
		}
		if bytes.ContainsAny(raw, "\r\b\v\f\x1b") {
			return
		}
		var got []byte
		next := int64(0)
		for _, p := range pieces(raw, sizes) {
			_, _ = cut.Write(p)
			piece := cut.ReadText(next, 0)
			got, next = append(got, piece.Data...), piece.Next
		}
		cut.End()
		got = append(got, cut.ReadText(next, 0).Data...)
		// A character that was unfinished at the very end was read before the end was known.
		if !bytes.Equal(got, want) && strings.TrimRight(string(want), "\ufffd") != string(bytes.TrimRight(got, "\ufffd")) {
			t.Errorf("%q in pieces %v: %q, want %q", raw, sizes, got, want)
		}
	})
}

const lookBack = 4 << 10 // how far back the beginning of a sequence is looked for
