//go:build unix

package procgroup_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	. "github.com/tooldeadline/tooldeadline/procgroup/internal/simulate"
	"github.com/tooldeadline/tooldeadline/timeout"
)

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var errBroken = errors.New("broken")

// A slowWriter takes a time for its first write, and fails after some bytes.
type slowWriter struct {
	late  time.Duration
	fails bool
	after int

	mu  sync.Mutex
	got strings.Builder
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	late := w.late
	w.late = 0
	w.mu.Unlock()
	time.Sleep(late)
	w.mu.Lock()
	defer w.mu.Unlock()
	if left := w.after - w.got.Len(); w.fails && left < len(p) {
		w.got.Write(p[:left])
		return left, errBroken
	}
	return w.got.Write(p)
}

// mustHave checks what the command's own writer has got.
func mustHave(r *Run, want string) {
	r.Helper()
	w := r.Cmd.Stdout.(*slowWriter)
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.got.String(); got != want {
		r.Errorf("the writer got %q, want %q", got, want)
	}
}

// toSlow gives a command a writer that takes d for its first write.
func toSlow(d time.Duration) func(*Run) {
	return func(r *Run) {
		r.Cmd.Stdout = &slowWriter{late: d}
		r.Cleanup(func() { time.Sleep(d) }) // the bubble ends after its goroutines
	}
}

const slowText = "procgroup: writing to cmd.Stdout: not all output was accepted in time"

// SPEC 6.11, 6.14: a writer that is slow but alive gets all output, as long as that takes less than the kill grace; one that
// does not return holds up the call for no longer, and what it has not got is counted.
func TestSlowWriter(t *testing.T) {
	grace := procgroup.WithKillGrace(3 * time.Second)
	abort := aborts(time.Second)
	daemon := Step{Do: Daemon, Script: Script{ignoresTerm, lasts}}
	Test(t, []Scenario{
		{Name: "slow", Script: Script{writes(3)}, Options: []procgroup.Option{grace}, Set: toSlow(3*time.Second - 1), Want: []string{"0s 1: exit 0", "2.999999999s wait: exited 0"},
			Check: func(r *Run) { is(outcome{Stdout: "abc", Combined: "abc"})(r); mustHave(r, "abc") }},
		{Name: "too slow", Script: Script{writes(3)}, Options: []procgroup.Option{grace}, Set: toSlow(time.Hour),
			Check: by(4*time.Second, "exited 1", is(outcome{Error: slowText, Stdout: "abc", Combined: "abc", Unwritten: 3}))},
		{
			Name: "two that are too slow", Script: Script{prints, complains}, Options: []procgroup.Option{grace},
			Set: func(r *Run) {
				toSlow(time.Hour)(r)
				r.Cmd.Stderr = &slowWriter{late: time.Hour}
			},
			Check: by(4*time.Second, "exited 1"),
		},
		{
			// SPEC 6.6: what is left behind still gets the time to die, and is not called a survivor.
			Name: "a daemon holds the stream", Script: Script{daemon, prints, exits(0)}, Options: []procgroup.Option{grace}, Set: toSlow(2 * time.Second),
			Check: by(3*time.Second, "exited 0", is(outcome{Held: true, Stdout: "a", Combined: "a"}), func(r *Run) { mustHave(r, "a") }),
		},
		{Name: "limit", Script: Script{writes(3), lasts}, Options: []procgroup.Option{grace, limits(time.Second, 0)}, Set: toSlow(4*time.Second - 1),
			Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "3.999999999s wait: total timeout 124"}, Check: func(r *Run) { mustHave(r, "abc") }},
		{Name: "limit and orphans", Script: Script{writes(3), lasts}, Options: []procgroup.Option{grace, limits(time.Second, 0), procgroup.WithOrphans()}, Set: toSlow(4*time.Second - 1),
			Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "3.999999999s wait: total timeout 124"}, Check: func(r *Run) { mustHave(r, "abc") }},
		{Name: "abort with a grace", Script: Script{writes(3), lasts}, Options: []procgroup.Option{procgroup.WithAbortGrace(3 * time.Second)}, Set: toSlow(4*time.Second - 1), Events: abort,
			Want: []string{"1s 1: SIGTERM, dies of SIGTERM", "3.999999999s wait: aborted 130"}, Check: func(r *Run) { mustHave(r, "abc") }},
		{Name: "limit without a grace", Script: Script{writes(3), lasts}, Options: []procgroup.Option{procgroup.WithKillGrace(-1), limits(time.Second, 0)}, Set: toSlow(time.Hour),
			Check: by(2*time.Second, "total timeout 124", unwritten(3))},
		{Name: "abort without a grace", Script: Script{writes(3), lasts}, Set: toSlow(time.Hour), Events: abort,
			Check: by(2*time.Second, "aborted 130", unwritten(3))},
		{Name: "blocked, and then aborted", Script: Script{writes(3)}, Options: []procgroup.Option{procgroup.WithKillGrace(time.Minute)}, Set: toSlow(time.Hour), Events: aborts(2 * time.Second),
			Check: by(3*time.Second, "exited 1", is(outcome{Error: slowText, Stdout: "abc", Combined: "abc", Unwritten: 3}))},
		{
			Name: "blocked, and a limit", Script: Script{writes(1_000_000), exits(0)}, Options: []procgroup.Option{grace, limits(time.Second, 0)}, Set: toSlow(time.Hour),
			Check: by(5*time.Second, "total timeout 124", func(r *Run) {
				if n := r.Result.Stdout.Total; n == 0 || r.Result.Unwritten != n {
					r.Errorf("%d bytes read, %d not written", n, r.Result.Unwritten)
				}
			}),
		},
	}...)
}

// unwritten checks what a stopped command's writer has not got.
func unwritten(n int64) func(*Run) {
	return func(r *Run) {
		var stop *timeout.Error
		if !errors.As(r.Err, &stop) || stop.Err == nil || !strings.Contains(stop.Err.Error(), slowText) || r.Result.Unwritten != n || r.Result.PipeHeld {
			r.Errorf("%#v, %d unwritten", r.Err, r.Result.Unwritten)
		}
	}
}

// SPEC 6.26: a command whose writer fails gets SIGPIPE, as under os/exec, and what it would write then is no heartbeat. The
// output until then is in the result.
func TestFailedWriter(t *testing.T) {
	failing := func() *slowWriter { return &slowWriter{fails: true, after: 2} }
	chatty := Script{sleeps(time.Second), prints, sleeps(time.Second), prints, sleeps(time.Second), prints, sleeps(time.Second), prints, lasts}
	tell := "signal: broken pipe"
	Test(t, []Scenario{
		{Name: "stdout", Script: chatty, Set: func(r *Run) { r.Cmd.Stdout = failing() }, Want: []string{"4s 1: dies of SIGPIPE", "4s wait: exited 141"},
			Check: func(r *Run) { failedAfter(r, tell); mustHave(r, "ab") }},
		{Name: "stderr", Script: Script{complains, complains, sleeps(1), complains, sleeps(1), complains, lasts}, Set: func(r *Run) { r.Cmd.Stderr = failing() },
			Want: []string{"2ns 1: dies of SIGPIPE", "2ns wait: exited 141"}},
		{Name: "both", Script: Script{prints, complains, sleeps(1), complains, sleeps(1), prints, lasts}, Set: func(r *Run) { w := failing(); r.Cmd.Stdout, r.Cmd.Stderr = w, w },
			Want: []string{"2ns 1: dies of SIGPIPE", "2ns wait: exited 141"}},
		{Name: "SIGPIPE is ignored", Script: append(Script{{Do: Ignore, Signal: syscall.SIGPIPE}}, chatty...), Set: func(r *Run) { r.Cmd.Stdout = failing() },
			Options: []procgroup.Option{limits(0, 2*time.Second), procgroup.WithKillGrace(-1)}, Want: []string{"5s 1: SIGKILL, dies of SIGKILL", "5s wait: idle timeout 124"},
			Check: func(r *Run) { failedAfter(r, "signal: killed"); mustHave(r, "ab") }},
		{Name: "at the end", Script: Script{writes(3)}, Set: func(r *Run) { r.Cmd.Stdout = failing() }, Want: []string{"0s 1: exit 0", "0s wait: exited 1"},
			Check: is(outcome{Error: "procgroup: writing to cmd.Stdout: broken", Stdout: "abc", Combined: "abc", Unwritten: 1}, errBroken)},
	}...)
}

func failedAfter(r *Run, end string) {
	r.Helper()
	if end, n := end, r.Result.Stdout.Total; n != 3 || r.Result.Unwritten != 1 || r.Result.PipeHeld || !errors.Is(r.Err, errBroken) {
		r.Errorf("%v, %v, %d bytes, %d not written", end, r.Err, n, r.Result.Unwritten)
	}
	var own EndError
	if !errors.As(r.Err, &own) || own.Error() != end {
		r.Errorf("%v, want %v in it", r.Err, end)
	}
}

// A writer that panics, or exits its goroutine, aborts the command.
func TestPanickingWriter(t *testing.T) {
	Test(t, []Scenario{
		{
			Name: "panics", Script: Script{prints, lasts}, Set: func(r *Run) { r.Cmd.Stdout = writerFunc(func([]byte) (int, error) { panic("sink") }) },
			Want: []string{"0s 1: SIGKILL, dies of SIGKILL", "0s wait: aborted 130"},
			Check: func(r *Run) {
				if p := (*timeout.PanicError)(nil); !errors.As(r.Err, &p) || p.Value != "sink" || r.Result.Message != "tool process was aborted." {
					r.Error(r.Err, r.Result)
				}
			},
		},
		{
			Name: "exits its goroutine", Script: Script{prints, lasts}, Set: func(r *Run) {
				r.Cmd.Stdout = writerFunc(func([]byte) (int, error) { runtime.Goexit(); return 0, nil })
			},
			Want: []string{"0s 1: SIGKILL, dies of SIGKILL", "0s wait: aborted 130"},
			Check: func(r *Run) {
				if !errors.Is(r.Err, timeout.ErrGoexit) || r.Result.Message != "tool process was aborted." {
					r.Error(r.Err, r.Result)
				}
			},
		},
		{ // who writes on in its place must not take the same chunk again
			Name: "exits its goroutine at the end", Script: Script{prints}, Set: func(r *Run) {
				r.Cmd.Stdout = writerFunc(func([]byte) (int, error) { runtime.Goexit(); return 0, nil })
			},
			Check: func(r *Run) {
				if !errors.Is(r.Err, timeout.ErrGoexit) || r.Result.Unwritten != 1 {
					r.Error(r.Err, r.Result)
				}
			},
		},
	}...)
}

// SPEC 6.11: stdin that the command does not read, or not to its end, and readers that block, fail or panic.
func TestReaders(t *testing.T) {
	reads := func(n int) Step { return Step{Do: Read, N: n} }
	set := func(read func([]byte) (int, error)) func(*Run) {
		return func(r *Run) { r.Cmd.Stdin = readerFunc(read) }
	}
	endless := func(p []byte) (int, error) { return len(p), nil }
	Test(t, []Scenario{
		{
			Name: "read", Script: Script{reads(100), reads(100), prints}, Set: func(r *Run) { r.Cmd.Stdin = strings.NewReader("hello") },
			Want: []string{"0s 1: exit 0", "0s wait: exited 0"},
			Check: func(r *Run) {
				if n, _ := r.Input(); n != 5 {
					r.Errorf("%d bytes read", n)
				}
			},
		},
		{Name: "never read", Script: Script{sleeps(time.Second)}, Set: set(endless), Want: []string{"1s 1: exit 0", "1s wait: exited 0"}},
		{Name: "not to the end", Script: Script{reads(100), sleeps(time.Second), exits(3)}, Set: set(endless), Want: []string{"1s 1: exit 3", "1s wait: exited 3"}},
		{
			Name: "blocks", Script: Script{prints}, Set: func(r *Run) {
				set(func([]byte) (int, error) { time.Sleep(time.Hour); return 0, io.EOF })(r)
				r.Cleanup(func() { time.Sleep(time.Hour) })
			},
			Want: []string{"0s 1: exit 0", "0s wait: exited 0"},
		},
		// SPEC 3.15, 3.24
		{Name: "gives nothing", Script: Script{sleeps(time.Second)}, Set: set(func([]byte) (int, error) { return 0, nil }), Want: []string{"1s 1: exit 0", "1s wait: exited 0"}},
		{
			Name: "fails", Script: Script{reads(100), reads(100), prints},
			Set: func(r *Run) {
				r.Cmd.Stdin = io.MultiReader(strings.NewReader("some"), readerFunc(func([]byte) (int, error) { return 0, errBroken }))
			},
			Want:  []string{"0s 1: exit 0", "0s wait: exited 1"},
			Check: is(outcome{Error: "procgroup: reading stdin: broken", Stdout: "a", Combined: "a"}, errBroken),
		},
		{
			Name: "panics", Script: Script{reads(1), lasts}, Set: set(func([]byte) (int, error) { panic("reader") }),
			Want: []string{"0s 1: SIGKILL, dies of SIGKILL", "0s wait: aborted 130"},
			Check: func(r *Run) {
				if p := (*timeout.PanicError)(nil); !errors.As(r.Err, &p) || p.Value != "reader" {
					r.Error(r.Err)
				}
			},
		},
	}...)
}
