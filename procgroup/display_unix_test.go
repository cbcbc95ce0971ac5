//go:build unix

package procgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// SPEC 6.30: what stands on a terminal when the output has been written to it, on a pipe, on a terminal of a size, and
// where the beginning or the middle was dropped.
func TestTextOfADisplay(t *testing.T) {
	t.Parallel()
	const draw = `i=0; echo start; while [ $i -lt 200 ]; do test $i = 0 || printf '\033[3A'
		printf 'one %d\ntwo %d\nthree %d\n' $i $i $i; i=$((i+1)); done; echo end`
	const frame = "one 199\ntwo 199\nthree 199\nend\n"
	for _, tt := range []struct {
		name, script string
		opts         []procgroup.Option
		want         string
	}{
		{"a terminal", draw, []procgroup.Option{procgroup.Terminal{Rows: 24, Cols: 80}}, "start\n" + frame},
		{"the beginning and the end", draw, []procgroup.Option{procgroup.Capture{Tail: 64, Head: 26}}, "start\none 0\ntwo 0\nthree 0\n[LEFT left out]\n" + frame},
		{"the width of the terminal", `printf '\033[99Cx'`, []procgroup.Option{procgroup.Terminal{Rows: 5, Cols: 10}}, strings.Repeat(" ", 9) + "x"},
		{"the height of the terminal", `printf '\033[99Bx'`, []procgroup.Option{procgroup.Terminal{Rows: 5, Cols: 10}}, strings.Repeat("\n", 4) + "x"},
		{"the alternate screen of which the beginning is missing", `printf '\033[?1049h'; i=0; while [ $i -lt 99 ]; do printf '\033[Hframe %d\n' $i; i=$((i+1)); done; printf '\033[?1049l'; echo b`,
			[]procgroup.Option{procgroup.Capture{Tail: 64}}, "[LEFT left out]\nb\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := procgroup.Run(context.Background(), exec.Command("sh", "-c", tt.script), tt.opts...)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Stdout.Text()
			if begin, rest, ok := strings.Cut(got, "["); ok {
				_, rest, _ = strings.Cut(rest, " left out]")
				got = begin + "[LEFT left out]" + rest
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// SPEC 6.30: the size that a terminal has at the end counts.
func TestTextOfATerminalThatWasResized(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `read x; printf '\033[999Cx'`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := procgroup.Start(context.Background(), cmd, procgroup.Terminal{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(0, 40); err != nil { // the rows of one that was not given a number
		t.Error(err)
	}
	fmt.Fprintln(in)
	r, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Resize(10, 20); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
	if lines := strings.Split(r.Stdout.Text(), "\n"); len(lines[len(lines)-1]) != 40 {
		t.Errorf("%q", lines)
	}
}
