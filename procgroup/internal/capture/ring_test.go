package capture

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// merged ends an order and puts both streams together.
func merged(o *order, streams [2][]byte) []byte {
	o.flush([2]bool{})
	return o.merge(streams)
}

// text is what Kept.String makes of b.
func text(b []byte, dropped int64, open bool) string {
	k := Kept{Total: int64(len(b)) + dropped, Dropped: dropped, data: func() []byte { return b }}
	if open {
		k.cut = Unfinished(b)
	}
	return k.String()
}

// checkKept plays writes into the rings and the order, and into naive ones. Each write is a
// byte for its length, of which the lowest bit is the stream, and a byte for its content.
func checkKept(t *testing.T, limit int, script []byte) {
	t.Helper()
	rings := [2]*ring{{max: limit}, {max: limit}}
	both := &order{max: limit}
	var streams [2][]byte
	var all []byte
	for len(script) >= 2 {
		s, n := int(script[0]&1), int(script[0]>>1)
		p := script[1:min(len(script), 1+n)]
		if n > 100 { // long ones, of a single byte
			p = bytes.Repeat(script[1:2], n*7)
		}
		script = script[1+min(len(p), len(script)-1):]
		rings[s].write(p)
		both.add(s, p)
		streams[s] = append(streams[s], p...)
		all = append(all, p...)
	}
	var kept [2][]byte
	for s, r := range rings {
		want := streams[s]
		want = want[max(len(want)-limit, 0):]
		if got := r.bytes(); !bytes.Equal(got, want) {
			t.Fatalf("limit %d, stream %d: %q, want %q", limit, s, got, want)
		}
		if r.total != int64(len(streams[s])) {
			t.Fatalf("limit %d, stream %d: total %d, want %d", limit, s, r.total, len(streams[s]))
		}
		kept[s] = r.bytes()
	}
	// Characters are kept together, so the combined output is not always in the order of
	// the bytes: but it is the last ones, and within a stream they are in order.
	got := merged(both, kept)
	if len(got) != min(len(all), limit) {
		t.Fatalf("limit %d: combined %d bytes, want %d", limit, len(got), min(len(all), limit))
	}
	if ascii(all) && !bytes.Equal(got, all[max(len(all)-limit, 0):]) {
		t.Fatalf("limit %d: combined %q, want the end of %q", limit, got, all)
	}
	if len(streams[0]) == 0 || len(streams[1]) == 0 {
		if !bytes.Equal(got, all[max(len(all)-limit, 0):]) {
			t.Fatalf("limit %d: combined %q of one stream %q", limit, got, all)
		}
	}
}

func ascii(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// SPEC 6.3: whatever is written, the last bytes are kept and the counts are exact.
func FuzzKept(f *testing.F) {
	f.Add(0, []byte("\x06abc\x07def"))
	f.Add(5, []byte("\x06abc\x07def\x02g"))
	f.Add(1<<10, []byte("\xff0\xfe1\xff2\xfe3"))
	f.Fuzz(func(t *testing.T, limit int, script []byte) {
		checkKept(t, min(max(limit, 0), 1<<16), script)
	})
}

func TestKeptAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		script := make([]byte, r.IntN(300))
		for i := range script {
			script[i] = byte(r.Uint32())
			if r.IntN(2) == 0 {
				script[i] &= 0x7f
			}
		}
		limit := r.IntN(40)
		if r.IntN(3) == 0 {
			limit = r.IntN(20000)
		}
		checkKept(t, limit, script)
		checkKept(t, Unlimited, script)
	}
}

// SPEC 6.3: the other stream does not get into the middle of a character.
func TestCombinedKeepsCharactersWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := [2]string{strings.Repeat("aé€😀", 50), strings.Repeat("zß‰🚀", 50)}
	for range 300 {
		both := &order{max: Unlimited}
		rest := texts
		for rest[0] != "" || rest[1] != "" {
			s := r.IntN(2)
			n := min(1+r.IntN(5), len(rest[s]))
			both.add(s, []byte(rest[s][:n]))
			rest[s] = rest[s][n:]
		}
		got := string(merged(both, [2][]byte{[]byte(texts[0]), []byte(texts[1])}))
		if !utf8.ValidString(got) {
			t.Fatalf("combined output is not UTF-8: %q", got)
		}
	}
}

// SPEC 6.3: a cut never splits a character in the text form; what is not UTF-8 by itself
// is left as it is.
func TestKeptString(t *testing.T) {
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
