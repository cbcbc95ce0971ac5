//go:build unix

package terminal_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/procgroup"
)

// The terminal is small, so that its edges are met often.
const rows, cols = 6, 20

// A writer makes output of random sequences that programs draw with. It leaves out where terminals differ or the
// emulator has faults of its own: sequences with a count of 0, those that erase the whole screen, which the emulator
// keeps, a cursor behind the last column when it is saved or the screen changes, and characters that are shifted while
// a scroll region is set.
type writer struct {
	*rand.Rand
	strings.Builder
	wrap, region, alternate bool
}

func (w *writer) sequence(format string, most ...int) {
	var args []any
	for _, n := range most {
		args = append(args, 1+w.IntN(n))
	}
	fmt.Fprintf(w, format, args...)
}

func (w *writer) step() {
	const beyondRows, beyondCols = rows + 2, cols + 5
	switch w.IntN(28) {
	default:
		w.WriteString(strings.Repeat(string(rune('a'+w.IntN(26))), 1+w.IntN(30)))
	case 0, 1, 2:
		w.WriteString("\n")
	case 3:
		w.WriteString("\r")
	case 4:
		w.WriteString("\b")
	case 5:
		if !w.wrap { // behind the last column a tab of ours begins a row
			w.WriteString("\t")
		}
	case 6:
		w.sequence("\x1b[%dA", beyondRows)
	case 7:
		w.sequence("\x1b[%dB", beyondRows)
	case 8:
		w.sequence("\x1b[%dC", beyondCols)
	case 9:
		w.sequence("\x1b[%dD", beyondCols)
	case 10:
		w.sequence("\x1b[%d;%dH", beyondRows, beyondCols)
	case 11:
		w.sequence("\r\x1b[%dC\x1b[K", cols-2)
	case 12:
		w.sequence("\r\x1b[%dC\x1b[%dK", cols-2, 2)
	case 13:
		w.sequence("\x1b[%d;%dH\x1b[J", beyondRows, beyondCols)
	case 14:
		w.sequence("\x1b[%dG", beyondCols)
	case 15:
		w.sequence("\x1b[%dd", beyondRows)
	case 16:
		if !w.region {
			w.sequence("\r\x1b[%dC\x1b[%dP", cols-2, 5)
		}
	case 17:
		if !w.region {
			w.sequence("\r\x1b[%dC\x1b[%d@", cols-2, 5)
		}
	case 18:
		w.sequence("\r\x1b[%dC\x1b[%dX", cols-2, 5)
	case 19:
		w.sequence("\r\x1b[%dL", 5)
	case 20:
		w.region = true
		fmt.Fprintf(w, "\x1b[1;%dr", 2+w.IntN(rows-1))
	case 21:
		w.WriteString("\r\x1b7text\x1b8")
	case 22:
		w.WriteString("\r\x1bM")
	case 23:
		w.WriteString("\x1b[31mred\x1b[0m")
	case 24:
		w.sequence("\x1b[%dE", 3)
	case 25:
		w.WriteString("e\u0301")
	case 26:
		w.WriteString("\x1b]0;title\x07")
	case 27:
		w.show(!w.alternate)
	}
}

// show shows the alternate screen, or the normal one.
func (w *writer) show(alternate bool) {
	if w.alternate = alternate; alternate {
		w.WriteString("\r\x1b[r\x1b[?1049h\x1b[H")
	} else {
		w.WriteString("\r\x1b[?1049l")
	}
}

func output(seed uint64) string {
	w := writer{Rand: rand.New(rand.NewPCG(seed, 0))}
	if w.wrap = w.IntN(2) == 0; !w.wrap {
		w.WriteString("\x1b[?7l")
	}
	for range 1 + w.IntN(40) {
		w.step()
	}
	if w.alternate {
		w.show(false)
	}
	return w.String()
}

// shown returns what the emulator shows, with what has scrolled away above it.
func shown(t *testing.T, p []byte) []string {
	t.Helper()
	e := vt.NewEmulator(cols, rows)
	go func() { _, _ = io.Copy(io.Discard, e) }() // its answers, which it waits to be read
	defer e.InputPipe().(io.Closer).Close()       // which ends that; Close of the emulator has a race with its Read
	if _, err := e.Write(p); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range e.ScrollbackLen() {
		lines = append(lines, e.Scrollback().Line(i).String())
	}
	return seen(append(lines, strings.Split(e.String(), "\n")...))
}

// rowsOf divides text into rows of the terminal.
func rowsOf(text string) []string {
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		row, width := "", 0
		for _, r := range line {
			n := 1
			switch r {
			case '\u0301':
				n = 0
			case '\t':
				n = min(8-width%8, cols-width)
			}
			if width+n > cols {
				all, row, width = append(all, row), "", 0
			}
			if width += n; r == '\t' {
				row += strings.Repeat(" ", n)
			} else {
				row += string(r)
			}
		}
		all = append(all, row)
	}
	return seen(all)
}

// seen returns the lines in which something is to be seen, without the blanks at their ends.
func seen(lines []string) (all []string) {
	for _, line := range lines {
		if line = strings.TrimRight(line, " "); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// check compares what procgroup and the emulator make of a command's output on a terminal.
func check(t *testing.T, p string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(path, []byte(p), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := procgroup.Run(context.Background(), exec.Command("cat", path), procgroup.Terminal{Rows: rows, Cols: cols}, procgroup.Limits{Total: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shown(t, r.Stdout.Bytes()), rowsOf(r.Stdout.Text())); diff != "" {
		t.Errorf("%q (-emulator +text):\n%s", r.Stdout.Bytes(), diff)
	}
}

// SPEC 6.30: text is what a terminal shows.
func TestTextIsWhatATerminalShows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { check(t, output(seed)) })
	}
}

func FuzzTextIsWhatATerminalShows(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { check(t, output(seed)) })
}
