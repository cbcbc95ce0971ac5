package procgroup_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

func linesOf(chunks ...procgroup.Chunk) (lines []string) {
	f := procgroup.Lines(func(line string, stderr bool) {
		stream := "1"
		if stderr {
			stream = "2"
		}
		lines = append(lines, stream+":"+line)
	})
	for _, c := range chunks {
		f(c)
	}
	return lines
}

func out(s string) procgroup.Chunk {
	return procgroup.Chunk{Data: []byte(s)}
}

func TestLines(t *testing.T) {
	last := procgroup.Chunk{Last: true}
	skipped := out("lost\nnext\n")
	skipped.Skipped = 1
	const maxLine = 64 << 10 // as the documentation says
	long := strings.Repeat("x", maxLine-1)
	for _, tt := range []struct {
		name   string
		chunks []procgroup.Chunk
		want   []string
	}{
		{"newlines", []procgroup.Chunk{out("a\nb\n\nc\n")}, []string{"1:a", "1:b", "1:", "1:c"}},
		{"carriage returns", []procgroup.Chunk{out("1%\r2%\r3%\n")}, []string{"1:1%", "1:2%", "1:3%"}},
		{"both", []procgroup.Chunk{out("a\r\nb\r"), out("\nc\r\n")}, []string{"1:a", "1:b", "1:c"}},
		{"no end", []procgroup.Chunk{out("a\nb"), last}, []string{"1:a", "1:b"}},
		{"nothing at the end", []procgroup.Chunk{out("a\n"), last}, []string{"1:a"}},
		{"streams", []procgroup.Chunk{out("a"), {Stderr: true, Data: []byte("b\n")}, out("c\n")}, []string{"2:b", "1:ac"}},
		{"skipped", []procgroup.Chunk{out("begin"), skipped}, []string{"1:next"}},
		{"long", []procgroup.Chunk{out(long), out("€ and more"), out("\nz\n")}, []string{"1:" + long, "1:z"}},
	} {
		if got := linesOf(tt.chunks...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %.100q, want %.100q", tt.name, got, tt.want)
		}
	}
}

// However the text is cut into chunks, the lines are the same.
func TestLinesAnywhereCut(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const text = "a\r\nbb\n\r\r\n\nccc\rd\n\n"
	want := linesOf(out(text))
	for range 500 {
		var chunks []procgroup.Chunk
		for rest := text; rest != ""; {
			n := 1 + r.IntN(len(rest))
			chunks = append(chunks, out(rest[:n]))
			rest = rest[n:]
		}
		if got := linesOf(chunks...); !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
