//go:build unix

package procgroup_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
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

// A slowWriter takes a time for its first write.
type slowWriter struct {
	late time.Duration

	mu  sync.Mutex
	got strings.Builder
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	time.Sleep(w.late)
	w.late = 0
	return w.got.Write(p)
}

// mustHave checks what the command's own writer has got.
func mustHave(r *Run, want string) {
	r.Helper()
	if got := r.Cmd.Stdout.(*slowWriter).got.String(); got != want {
		r.Errorf("the writer got %q, want %q", got, want)
	}
}

// SPEC 6.11, 6.14, 6.26: what the error says of readers and writers that fail or are too slow. When the call returns, and
// that every byte is counted, the simulation proves.
func TestFailingReadersAndWriters(t *testing.T) {
	to := func(w io.Writer) func(*Run) { return func(r *Run) { r.Cmd.Stdout = w } }
	breaks := writerFunc(func(p []byte) (int, error) { return min(len(p), 1), errBroken })
	Test(t, []Scenario{
		{
			Name: "a writer that is too slow", Script: Script{writes(3)}, Options: []procgroup.Option{procgroup.Stop{Grace: 3 * time.Second}},
			Set: func(r *Run) {
				to(&slowWriter{late: time.Hour})(r)
				r.Cleanup(func() { time.Sleep(time.Hour) }) // the bubble ends after its goroutines
			},
			Check: is(outcome{Error: "procgroup: writing to cmd.Stdout: not all output was accepted in time", Stdout: "abc", Combined: "abc", Unwritten: 3}),
		},
		{
			Name: "a writer that fails at the end", Script: Script{writes(3)}, Set: to(breaks), Want: []string{"0s 1: exit 0", "0s wait: exited 1"},
			Check: is(outcome{Error: "procgroup: writing to cmd.Stdout: broken", Stdout: "abc", Combined: "abc", Unwritten: 2}, errBroken),
		},
		{
			Name: "a writer that fails", Script: Script{writes(3), sleeps(1), prints, lasts}, Set: to(breaks), Want: []string{"1ns 1: dies of SIGPIPE", "1ns wait: exited 141"},
			Check: func(r *Run) {
				if own := (EndError{}); !errors.As(r.Err, &own) || own.Error() != "signal: broken pipe" || !errors.Is(r.Err, errBroken) {
					r.Error(r.Err)
				}
			},
		},
		{
			Name: "and SIGPIPE is ignored", Script: Script{{Do: Ignore, Signal: syscall.SIGPIPE}, writes(3), sleeps(time.Second), prints, lasts}, Set: to(breaks),
			Options: []procgroup.Option{limits(0, 2*time.Second)}, Want: []string{"2s 1: SIGTERM, dies of SIGTERM", "2s wait: idle timeout 124"},
		},
		{
			Name: "a reader that is read", Script: Script{{Do: Read, N: 100}, {Do: Read, N: 100}, prints}, Set: func(r *Run) { r.Cmd.Stdin = strings.NewReader("hello") },
			Want: []string{"0s 1: exit 0", "0s wait: exited 0"},
			Check: func(r *Run) {
				if n, _ := r.Input(); n != 5 {
					r.Errorf("%d bytes read", n)
				}
			},
		},
		{
			Name: "a reader that fails", Script: Script{{Do: Read, N: 100}, {Do: Read, N: 100}, prints},
			Set: func(r *Run) {
				r.Cmd.Stdin = io.MultiReader(strings.NewReader("some"), readerFunc(func([]byte) (int, error) { return 0, errBroken }))
			},
			Want:  []string{"0s 1: exit 0", "0s wait: exited 1"},
			Check: is(outcome{Error: "procgroup: reading stdin: broken", Stdout: "a", Combined: "a"}, errBroken),
		},
	}...)
}
