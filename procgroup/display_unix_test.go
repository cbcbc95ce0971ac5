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

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// SPEC 6.30: the size that a terminal has at the end counts.
func TestTextOfATerminalThatWasResized(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sh", "-c", `read x; printf '\033[999B\033[999Cx'`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := procgroup.Start(context.Background(), cmd, procgroup.Terminal{Rows: 30, Cols: 80})
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
	if lines := strings.Split(r.Stdout.Text(), "\n"); len(lines) != 24 || len(lines[23]) != 40 {
		t.Errorf("%q", lines)
	}
}
