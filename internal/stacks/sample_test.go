package stacks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/stacks"
)

// find returns the result of Find in a process with the given traces.
func find(t *testing.T, arg string, traces ...string) string {
	t.Helper()
	s := &stacks.Sampler{Frame: frame, Dump: func(buf []byte) int { return copy(buf, strings.Join(traces, "\n\n")+"\n") }} // as the runtime ends it
	sample, fresh := s.Take(1 << 30)
	if !fresh {
		t.Fatal("refused")
	}
	return string(sample.Find(arg))
}

func trace(n int, arg string, createdBy int) string {
	s := fmt.Sprintf("goroutine %d [select]:\nmain.work(0x1)\n\t/a.go:1 +0x1", n)
	if arg != "" {
		s += "\nexample.com/stacks_test.stands(" + arg + ")\n\t/b.go:2 +0x2"
	}
	return s + fmt.Sprintf("\ncreated by main.start in goroutine %d\n\t/c.go:3 +0x3", createdBy)
}

func TestFind(t *testing.T) {
	one, two := trace(7, "0xc000010000", 1), trace(8, "0xc000020000?", 1)
	child, grandchild := trace(70, "", 7), trace(700, "", 70)
	stranger := trace(77, "", 17) // whose number begins and ends alike
	notByOne := "goroutine 5 [running]:\nmain.work(0x1)\ncreated by main.start\n\t/c.go:3 +0x3"
	for _, tc := range []struct {
		name, arg string
		traces    []string
		want      []string
	}{
		{"it alone", "0xc000010000", []string{one, two}, []string{one}},
		{"a stale argument", "0xc000020000", []string{one, two}, []string{two}},
		{"the last", "0xc000020000", []string{stranger, notByOne, two}, []string{two}},
		{"part of an argument", "0xc00001", []string{one, two}, nil},
		{"none", "0xc000030000", []string{one, two}, nil},
		{"nothing", "0xc000010000", nil, nil},
		{"with its children", "0xc000010000", []string{grandchild, child, stranger, one, two, notByOne}, []string{one, child, grandchild}},
		{"without a number", "0x9", []string{"goroutine x [select]:\n/stacks_test.stands(0x9)", trace(3, "", 0)}, []string{"goroutine x [select]:\n/stacks_test.stands(0x9)"}},
		{"not a trace", "0x9", []string{"/stacks_test.stands(0x9)"}, []string{"/stacks_test.stands(0x9)"}},
		{"cut in the middle", "0x9", []string{"goroutine 3 [select]:\n/stacks_test.stands(0x9"}, []string{"goroutine 3 [select]:\n/stacks_test.stands(0x9"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := find(t, tc.arg, tc.traces...), strings.Join(tc.want, "\n\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The result is at most 64 KiB: whole children as far as they fit, and only the beginning of a
// longer first trace.
func TestFindIsBounded(t *testing.T) {
	const most = 64 << 10
	own := trace(7, "0x9", 1)
	child := trace(70, "", 7)
	fill := func(n int) string { // a child of n bytes
		return child + strings.Repeat("x", n-len(child))
	}
	exact := most - len(own) - 2
	for _, tc := range []struct {
		name   string
		traces []string
		want   string
	}{
		{"a child that just fits", []string{own, fill(exact)}, own + "\n\n" + fill(exact)},
		{"one that does not", []string{own, fill(exact + 1)}, own},
		{"the second does not", []string{own, child, fill(exact)}, own + "\n\n" + child},
		{"its own is too long", []string{own + strings.Repeat("x", most)}, (own + strings.Repeat("x", most))[:most]},
		{"its own is too long, and there are children", []string{own + strings.Repeat("x", most), child}, (own + strings.Repeat("x", most))[:most]},
		{"its own just fits", []string{own + strings.Repeat("x", most-len(own)), child}, own + strings.Repeat("x", most-len(own))},
	} {
		if got := find(t, "0x9", tc.traces...); got != tc.want {
			t.Errorf("%s: %d bytes, want %d", tc.name, len(got), len(tc.want))
		}
	}
}

// A post is a place where a goroutine waits.
type post struct{ taken, left chan struct{} }

//go:noinline
func stands(p *post) {
	close(p.taken)
	<-p.left
	p.left = nil // p is in use until here, so its address is in the trace
}

// Find works on the output of the runtime.
func TestRealStack(t *testing.T) {
	posts := []*post{{make(chan struct{}), make(chan struct{})}, {make(chan struct{}), make(chan struct{})}}
	done := make(chan struct{})
	for _, p := range posts {
		go func() { stands(p); done <- struct{}{} }()
		<-p.taken
	}
	s := &stacks.Sampler{Frame: frame}
	sample, fresh := s.Take(1 << 30)
	if !fresh {
		t.Fatal("refused")
	}
	for _, p := range posts {
		got := string(sample.Find(fmt.Sprintf("%p", p)))
		if !strings.HasPrefix(got, "goroutine ") || !strings.Contains(got, fmt.Sprintf("stands(%p", p)) {
			t.Errorf("%s", got)
		}
		close(p.left)
		<-done
	}
}
