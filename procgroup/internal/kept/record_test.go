package kept

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
)

// text is what Output.String makes of b.
func text(b []byte, dropped int64, open bool) string {
	k := Output{Total: int64(len(b)) + dropped, Dropped: dropped, data: func() []byte { return b }}
	if open {
		k.cut = Unfinished(b)
	}
	return k.String()
}

// endsOf returns the first and the last bytes of all, and the number of bytes and lines between them.
func endsOf(all []byte, head, limit int) (kept []byte, bytesLeft, linesLeft int64) {
	first := all[:min(head, len(all))]
	rest := all[len(first):]
	last := rest[max(len(rest)-limit, 0):]
	left := rest[:len(rest)-len(last)]
	if head > 0 { // or lines are not counted
		linesLeft = int64(bytes.Count(left, newline))
	}
	return append(append([]byte{}, first...), last...), int64(len(left)), linesLeft
}

// checkKept plays writes into a Record, and into naive buffers. Each write is a byte for its
// length, of which the lowest bit is the stream, and a byte for its content.
func checkKept(t *testing.T, head, limit int, script []byte) {
	t.Helper()
	c := NewRecord(head, limit)
	if limit == Unlimited {
		head = 0
	}
	var streams [2][]byte
	var all []byte
	for len(script) >= 2 {
		s, n := int(script[0]&1), int(script[0]>>1)
		p := script[1:min(len(script), 1+n)]
		if n > 100 { // long ones, of a single byte
			p = bytes.Repeat(script[1:2], n*7)
		}
		script = script[1+min(len(p), len(script)-1):]
		c.Add(s, p)
		streams[s] = append(streams[s], p...)
		all = append(all, p...)
	}
	stdout, stderr, combined := c.Outputs([2]bool{}, screen.Config{})
	for s, k := range []Output{stdout, stderr} {
		want, dropped, lines := endsOf(streams[s], head, limit)
		if got := k.Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("head %d, limit %d, stream %d: %q, want %q", head, limit, s, got, want)
		}
		if k.Total != int64(len(streams[s])) || k.Dropped != dropped || k.DroppedLines != lines {
			t.Fatalf("head %d, limit %d, stream %d: %+v, want %d, %d, %d", head, limit, s, k, len(streams[s]), dropped, lines)
		}
		checkText(t, k, streams[s], head, limit)
	}
	// Characters are kept together, so the combined output is not always in the order of
	// the bytes: but it is the first and the last ones, and within a stream they are in order.
	want, dropped, lines := endsOf(all, head, limit)
	got := combined.Bytes()
	if len(got) != len(want) || combined.Total != int64(len(all)) || combined.Dropped != dropped {
		t.Fatalf("head %d, limit %d: combined %+v of %d bytes, want %d", head, limit, combined, len(got), len(want))
	}
	if left := int64(bytes.Count(all, newline) - bytes.Count(got, newline)); head > 0 && combined.DroppedLines != left {
		t.Fatalf("head %d, limit %d: %d lines dropped, want %d", head, limit, combined.DroppedLines, left)
	}
	if ascii(all) {
		if !bytes.Equal(got, want) || combined.DroppedLines != lines {
			t.Fatalf("head %d, limit %d: combined %q, want %q", head, limit, got, want)
		}
		checkText(t, combined, all, head, limit)
	}
	if (len(streams[0]) == 0 || len(streams[1]) == 0) && !bytes.Equal(got, want) {
		t.Fatalf("head %d, limit %d: combined %q of one stream %q", head, limit, got, all)
	}
}

var leftOut = regexp.MustCompile(`^(?:(\d+) lines?, )?(\d+) bytes? left out\]\n`)

// checkText checks the text of k, in which head and tail are cut at line ends: it says exactly how
// much of all is missing.
func checkText(t *testing.T, k Output, all []byte, head, limit int) {
	t.Helper()
	first, last, left := k.parts()
	if k.Dropped == 0 {
		if left != "" || len(first) > 0 || !bytes.Equal(last, all) {
			t.Fatalf("%q, %q, %q of %q", first, left, last, all)
		}
		return
	}
	if !bytes.HasPrefix(all, first) || !bytes.HasSuffix(all, last) || len(first) > head || len(last) > limit {
		t.Fatalf("head %d, limit %d: %q and %q of %q", head, limit, first, last, all)
	}
	between := all[len(first) : len(all)-len(last)]
	m := leftOut.FindStringSubmatch(left[1:])
	if m == nil {
		t.Fatalf("%q", left)
	}
	lines, _ := strconv.Atoi(m[1])
	if n, _ := strconv.Atoi(m[2]); n != len(between) || head > 0 && lines != bytes.Count(between, newline) || head == 0 && m[1] != "" {
		t.Fatalf("%q says what is left out: %q", left, between)
	}
	if kept := all[:min(head, len(all))]; bytes.Contains(kept, newline) && first[len(first)-1] != '\n' {
		t.Fatalf("%q is not cut at a line end", first)
	}
	kept := all[max(len(all)-limit, 0):]
	if i := bytes.IndexByte(kept, '\n'); i >= 0 && i+1 < len(kept) && all[len(all)-len(last)-1] != '\n' {
		t.Fatalf("%q does not begin with a line", last)
	}
}

func ascii(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// SPEC 6.3, 6.20: whatever is written, the first and the last bytes are kept and the counts are exact.
func FuzzRecord(f *testing.F) {
	f.Add(0, 0, []byte("\x06abc\x07def"))
	f.Add(1, 5, []byte("\x06abc\x07def\x02g"))
	f.Add(2, 2, []byte("\x06\nbc\x07de\n\x04g\n"))
	f.Add(500, 1<<10, []byte("\xff0\xfe1\xff2\xfe3"))
	f.Fuzz(func(t *testing.T, head, limit int, script []byte) {
		checkKept(t, min(max(head, 0), 1<<16), min(max(limit, 0), 1<<16), script)
	})
}

func TestRecordAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		script := make([]byte, r.IntN(300))
		for i := range script {
			script[i] = byte(r.Uint32())
			if r.IntN(2) == 0 {
				script[i] &= 0x7f
			}
			if r.IntN(8) == 0 {
				script[i] = '\n'
			}
		}
		head, limit := r.IntN(40), r.IntN(40)
		if r.IntN(3) == 0 {
			limit = r.IntN(20000)
		}
		if r.IntN(3) == 0 {
			head = r.IntN(20000)
		}
		checkKept(t, head, limit, script)
		checkKept(t, 0, limit, script)
		checkKept(t, head, Unlimited, script)
	}
}

// SPEC 6.3: the other stream does not get into the middle of a character.
func TestCombinedKeepsCharactersWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := [2]string{strings.Repeat("aé€😀", 50), strings.Repeat("zß‰🚀", 50)}
	for range 300 {
		both := NewRecord(0, Unlimited)
		rest := texts
		for rest[0] != "" || rest[1] != "" {
			s := r.IntN(2)
			n := min(1+r.IntN(5), len(rest[s]))
			both.Add(s, []byte(rest[s][:n]))
			rest[s] = rest[s][n:]
		}
		_, _, combined := both.Outputs([2]bool{}, screen.Config{})
		got := combined.String()
		if !utf8.ValidString(got) {
			t.Fatalf("combined output is not UTF-8: %q", got)
		}
	}
}

// SPEC 6.3: both streams may end inside a character at once.
func TestCombinedEndsInsideCharacters(t *testing.T) {
	for _, texts := range [][2]string{{"a\xe2\x82", "b\xf0\x9f"}, {"a\xe2\x82", "b"}, {"a", "b\xf0\x9f"}} {
		c := NewRecord(0, Unlimited)
		for i, text := range texts {
			c.Add(i, []byte(text))
		}
		if _, _, combined := c.Outputs([2]bool{true, true}, screen.Config{}); combined.String() != "ab" {
			t.Errorf("%q becomes %q", texts, combined.String())
		}
	}
}

// SPEC 6.3: what is kept of a flood needs no more memory than its bounds.
func TestFloodInBoundedMemory(t *testing.T) {
	for _, head := range []int{0, 1 << 20} {
		c, block := NewRecord(head, 1<<20), bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
		inUse := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := inUse()
		for range 256 {
			c.Add(0, block)
		}
		if used := int64(inUse() - before); used > 16<<20 {
			t.Errorf("%d MiB for 64 MiB of output with a head of %d bytes", used>>20, head)
		}
		if stdout, _, _ := c.Outputs([2]bool{}, screen.Config{}); stdout.Total != 64<<20 || len(stdout.Bytes()) != head+1<<20 {
			t.Errorf("%d bytes kept of %d", len(stdout.Bytes()), stdout.Total)
		}
	}
}

// SPEC 6.3: a cut never splits a character in the text form; text that is not UTF-8 by itself is left
// as it is.
func TestString(t *testing.T) {
	const euro = "€" // 3 bytes
	for _, tt := range []struct {
		name    string
		bytes   string
		dropped int64
		open    bool
		want    string
	}{
		{"whole", "a" + euro, 0, false, "a" + euro},
		{"cut after the first byte", euro[1:] + "b", 7, false, "b"},
		{"cut after the second byte", euro[2:] + "b", 7, false, "b"},
		{"nothing dropped", euro[1:] + "b", 0, false, euro[1:] + "b"},
		{"only the rest of a character", euro[1:], 1, false, ""},
		{"not UTF-8", "\x80\x80\x80\x80b", 1, false, "\x80\x80\x80\x80b"},
		{"killed within a character", "a" + euro[:2], 0, true, "a"},
		{"ended within a character", "a" + euro[:2], 0, false, "a" + euro[:2]},
		{"killed after one", "a" + euro, 0, true, "a" + euro},
		{"empty", "", 0, true, ""},
	} {
		if got := text([]byte(tt.bytes), tt.dropped, tt.open); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// SPEC 6.20: how head and tail are put together.
func TestTextOfHeadAndTail(t *testing.T) {
	for _, tt := range []struct {
		name         string
		head, limit  int
		output       string
		str, cleaned string
	}{
		{"all", 4, 4, "ab\ncd\r\n", "ab\ncd\r\n", "ab\ncd\n"},
		{"one byte too many", 2, 2, "abcde", "ab\n[1 byte left out]\nde", "ab\n[1 byte left out]\nde"},
		{"cut at line ends", 4, 4, "a\nbcdef\ng\n", "a\n[1 line, 6 bytes left out]\ng\n", "a\n[1 line, 6 bytes left out]\ng\n"},
		{"cuts that are at line ends", 2, 2, "a\nb\nc\nd\n", "a\n[2 lines, 4 bytes left out]\nd\n", "a\n[2 lines, 4 bytes left out]\nd\n"},
		{"no line ends", 4, 4, "aé€€éb", "aé\n[6 bytes left out]\néb", "aé\n[6 bytes left out]\néb"},
		{"the last line end only", 2, 3, "abcdef\n", "ab\n[2 bytes left out]\nef\n", "ab\n[2 bytes left out]\nef\n"},
		{"a head only", 3, 0, "a\nb\nc", "a\n[1 line, 3 bytes left out]\n", "a\n[1 line, 3 bytes left out]\n"},
		{"a tail only", 0, 4, "ab\ncd\ne", "cd\ne", "[3 bytes left out]\ncd\ne"},
		{"a tail within a line", 0, 4, "ab\ncd\nef", "d\nef", "[6 bytes left out]\nef"},
		{"nothing", 0, 0, "ab\ncd", "", "[5 bytes left out]\n"},
		{"above a cut", 2, 8, "a\nb\nc\n\x1b[2Ad\n", "a\n[1 line, 2 bytes left out]\nc\n\x1b[2Ad\n", "a\n[1 line, 2 bytes left out]\nd\nc\n"},
		{"escapes", 7, 4, "\x1b[1mab\nc\nd\re\n", "\x1b[1mab\n[1 line, 2 bytes left out]\nd\re\n", "ab\n[1 line, 2 bytes left out]\ne\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewRecord(tt.head, tt.limit)
			c.Add(1, []byte(tt.output))
			_, stderr, combined := c.Outputs([2]bool{}, screen.Config{})
			for _, k := range []Output{stderr, combined} {
				if k.String() != tt.str || k.Text() != tt.cleaned {
					t.Errorf("%q and %q, want\n%q and %q", k.String(), k.Text(), tt.str, tt.cleaned)
				}
			}
		})
	}
}
