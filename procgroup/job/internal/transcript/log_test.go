package transcript_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
)

// SPEC 15.3: every byte once, or the number of bytes before it that were dropped, whatever the sizes.
func TestRead(t *testing.T) {
	for _, size := range []int{1, 2, 7, 4096, 5000, 10_000} {
		rnd := rand.New(rand.NewPCG(1, uint64(size)))
		l := transcript.New(size)
		var all []byte
		var next [3]int64
		for i := range 400 {
			p := make([]byte, rnd.IntN(3*size/2+2))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			if n, err := l.Write(p); n != len(p) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
			all = append(all, p...)
			if i%50 == 49 {
				l.Trim()
			}
			for r := range next {
				if rnd.IntN(r+1) > 0 {
					continue
				}
				limit := 0
				if r == 2 {
					limit = rnd.IntN(size) + 1
				}
				got := l.Read(next[r], limit)
				kept := max(next[r], int64(len(all)-size))
				want := transcript.Piece{Data: all[kept:], Dropped: kept - next[r], Next: int64(len(all))}
				if limit > 0 && len(want.Data) > limit {
					want.Data, want.Next = want.Data[:limit], kept+int64(limit)
				}
				if !bytes.Equal(got.Data, want.Data) {
					t.Fatalf("%d bytes kept, reader %d: other data", size, r)
				}
				got.Data, want.Data = nil, nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%d bytes kept, reader %d (-want +got):\n%s", size, r, diff)
				}
				next[r] = got.Next
			}
		}
	}
}

// SPEC 15.3: a position that makes no sense is one of the ends, and the end says so.
func TestReadAtTheEnds(t *testing.T) {
	l := transcript.New(3)
	_, _ = l.Write([]byte("12345"))
	check := func(from int64, limit int, want transcript.Piece) {
		t.Helper()
		if diff := cmp.Diff(want, l.Read(from, limit)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	check(-7, 0, transcript.Piece{Data: []byte("345"), Dropped: 2, Next: 5})
	check(0, 1, transcript.Piece{Data: []byte("3"), Dropped: 2, Next: 3})
	check(4, -1, transcript.Piece{Data: []byte("5"), Next: 5})
	check(5, 0, transcript.Piece{Next: 5})
	check(1000, 5, transcript.Piece{Next: 5})
	l.End()
	check(3, 1, transcript.Piece{Data: []byte("4"), Next: 4})
	check(3, 2, transcript.Piece{Data: []byte("45"), Next: 5, Last: true})
	check(5, 0, transcript.Piece{Next: 5, Last: true})
	_, _ = l.Write([]byte("late"))
	check(5, 0, transcript.Piece{Next: 5, Last: true})
	l.Release()
	check(1, 0, transcript.Piece{Dropped: 4, Next: 5, Last: true})
	check(5, 0, transcript.Piece{Next: 5, Last: true})
}

// SPEC 15.3: the same at the ends of the numbers, and before there is any output.
func TestReadBeyond(t *testing.T) {
	empty, some := transcript.New(3), transcript.New(3)
	_, _ = some.Write([]byte("12345"))
	for _, c := range []struct {
		name  string
		log   *transcript.Log
		from  int64
		limit int
		want  transcript.Piece
	}{
		{name: "no output", log: empty, from: 1},
		{name: "no output, the largest position", log: empty, from: math.MaxInt64, limit: 1},
		{name: "the largest position", log: some, from: math.MaxInt64, limit: 1, want: transcript.Piece{Next: 5}},
		{name: "the largest limit", log: some, from: 3, limit: math.MaxInt, want: transcript.Piece{Data: []byte("45"), Next: 5}},
		{name: "the least position", log: some, from: math.MinInt64, want: transcript.Piece{Data: []byte("345"), Dropped: 2, Next: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.log.Read(c.from, c.limit)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, c.log.ReadText(c.from, c.limit)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}
