//go:build unix

package procgroup_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
)

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var errBroken = errors.New("broken")

// SPEC 6.11, 6.14, 6.26: what the error says of readers and writers that fail or are too slow. When the call returns, and
// that every byte is counted, the simulation proves.
func TestFailingReadersAndWriters(t *testing.T) {
	to := func(w io.Writer) func(*Run) { return func(r *Run) { r.Cmd.Stdout = w } }
	breaks := writerFunc(func(p []byte) (int, error) { return min(len(p), 1), errBroken })
	Test(t, []Scenario{
		{
			Name: "a writer that is too slow", Script: Script{writes(3)}, Options: []procgroup.Option{procgroup.Stop{Grace: 3 * time.Second}},
			Set: func(r *Run) {
				to(writerFunc(func(p []byte) (int, error) { time.Sleep(time.Hour); return len(p), nil }))(r)
				r.Cleanup(func() { time.Sleep(time.Hour) }) // the bubble ends after its goroutines
			},
			Check: is(outcome{Error: "procgroup: writing to cmd.Stdout: not all output was accepted in time", Stdout: "abc", Combined: "abc", Unwritten: 3}),
		},
		{
			Name: "a writer that fails at the end", Script: Script{writes(3)}, Set: to(breaks), Want: []string{"0s 1: exit 0", "0s wait: exited 1"},
			Check: is(outcome{Error: "procgroup: writing to cmd.Stdout: broken", Stdout: "abc", Combined: "abc", Unwritten: 2}, errBroken),
		},
		{
			Name: "a reader that fails", Script: Script{{Do: Read, N: 100}, {Do: Read, N: 100}, prints},
			Set: func(r *Run) {
				r.Cmd.Stdin = io.MultiReader(strings.NewReader("some"), readerFunc(func([]byte) (int, error) { return 0, errBroken }))
			},
			Want:  []string{"0s 1: exit 0", "0s wait: exited 1"},
			Check: is(outcome{Error: "procgroup: reading stdin: broken", Stdout: "a", Combined: "a"}, errBroken),
		},
		{
			Name: "a writer whose error has a text without an end", Script: Script{writes(3)},
			Set: to(writerFunc(func([]byte) (int, error) { return 0, errors.New(strings.Repeat("x", 1<<20)) })),
			Check: func(r *Run) { // SPEC 3.25
				if n := len(r.Err.Error()); n > 1<<17 {
					r.Errorf("a text of %d bytes", n)
				}
			},
		},
	}...)
}

// SPEC 6.25: one writer for both streams gets them in the order of writing.
func TestOneWriter(t *testing.T) {
	var both strings.Builder
	Test(t, Scenario{
		Name: "in turns", Script: Script{complains, prints, complains}, Set: func(r *Run) { r.Cmd.Stdout, r.Cmd.Stderr = &both, &both },
		Check: func(r *Run) { is(outcome{Stdout: both.String(), Combined: both.String()})(r) },
	})
	if both.String() != "abc" { // which one pipe says; two would have streams of their own
		t.Errorf("%q", both.String())
	}
}
