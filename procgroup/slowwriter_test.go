//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A slowWriter takes what it gets when it is released.
type slowWriter struct {
	mu      sync.Mutex
	got     bytes.Buffer
	writing chan struct{} // gets one at the first write
	release chan struct{}
}

func newSlowWriter() *slowWriter {
	return &slowWriter{writing: make(chan struct{}, 1), release: make(chan struct{})}
}

func (w *slowWriter) Write(p []byte) (int, error) {
	select {
	case w.writing <- struct{}{}:
	default:
	}
	<-w.release
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got.Write(p)
}

// longerThanCollecting is more than what a call takes from the end of the command to its
// own, where nobody is waited for.
const longerThanCollecting = 1500 * time.Millisecond

// A writer that is slow but alive gets all output of a command that has ended, as long as
// that takes less than the kill grace.
func TestSlowWriterGetsEverything(t *testing.T) {
	t.Parallel()
	w := newSlowWriter()
	time.AfterFunc(longerThanCollecting, func() { close(w.release) })
	cmd := exec.Command("echo", "all of it")
	cmd.Stdout = w
	r, err := procgroup.Run(context.Background(), cmd, procgroup.WithKillGrace(longLimit))
	check(t, r, err, want{})
	if w.got.String() != "all of it\n" || r.Elapsed < longerThanCollecting {
		t.Errorf("%q after %v", &w.got, r.Elapsed)
	}
}

// SPEC 6.6, 6.11: what the command has left behind is then still given the time to die,
// and not called a survivor.
func TestSlowWriterAndDescendants(t *testing.T) {
	t.Parallel()
	eachContainment(t, func(t *testing.T, opt procgroup.Option) {
		t.Parallel()
		w := newSlowWriter()
		time.AfterFunc(longerThanCollecting, func() { close(w.release) })
		cmd, pids := family(t, "tree", "hold", "exit", "0")
		cmd.Stdout = w
		r, err := procgroup.Run(context.Background(), cmd, opt, procgroup.WithKillGrace(longLimit))
		check(t, r, err, want{held: true})
		if w.got.Len() == 0 {
			t.Error("nothing was written")
		}
		mustBeDead(t, pids())
	})
}

// SPEC 6.11: a writer that never returns holds up the call for the kill grace and a
// second at the most, and both streams together no longer than one.
func TestBlockedWriterIsLeftBehind(t *testing.T) {
	t.Parallel()
	const grace = time.Second
	best := time.Hour
	for range 3 { // one of them is undisturbed
		w := newSlowWriter()
		defer close(w.release)
		cmd := exec.Command("sh", "-c", "echo out; echo err >&2")
		cmd.Stdout, cmd.Stderr = w, writerFunc(w.Write)
		r, err := procgroup.Run(context.Background(), cmd, procgroup.WithKillGrace(grace))
		check(t, r, err, want{code: 1})
		if r.Combined.Total != 8 || r.Elapsed < grace {
			t.Errorf("%q after %v", r.Combined, r.Elapsed)
		}
		if best = min(best, r.Elapsed); best < grace+1100*time.Millisecond {
			return
		}
	}
	t.Errorf("took %v", best)
}

// SPEC 6.11: a caller that cancels does not wait for its writer.
func TestBlockedWriterAndAbort(t *testing.T) {
	t.Parallel()
	w := newSlowWriter()
	defer close(w.release)
	cmd := exec.Command("echo", "out")
	cmd.Stdout = w
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, err := procgroup.Start(ctx, cmd, procgroup.WithKillGrace(longLimit))
	if err != nil {
		t.Fatal(err)
	}
	<-w.writing
	for begun := time.Now(); statReaped(p.Pid()); time.Sleep(time.Millisecond) {
		if s, _ := statOf(p.Pid()); s.dead() {
			break
		}
		if time.Since(begun) > slack {
			t.Fatal("the command does not end")
		}
	}
	time.Sleep(50 * time.Millisecond) // for its end to have been seen
	begun := time.Now()
	cancel()
	r, err := p.Wait()
	if took := time.Since(begun); took > time.Second+slack {
		t.Errorf("took %v", took)
	}
	check(t, r, err, want{code: 1})
	if errors.Is(err, timeout.ErrAborted) || r.Stdout.String() != "out\n" {
		t.Errorf("%v, %q", err, r.Stdout)
	}
}

// WithOrphans: once it is known that the streams are held, there is nothing to wait for.
func TestOrphansHoldingStreamsCostLittle(t *testing.T) {
	t.Parallel()
	best := time.Hour
	for range 5 { // one of them is undisturbed
		cmd := exec.Command("sh", "-c", "sleep 3 & echo $!")
		r, err := procgroup.Run(context.Background(), cmd, procgroup.WithOrphans(true))
		check(t, r, err, want{held: true})
		killPid(atoi(string(bytes.TrimSpace(r.Stdout.Bytes()))))
		if best = min(best, r.Elapsed); best < 700*time.Millisecond {
			return
		}
	}
	t.Errorf("took %v", best)
}
