//go:build linux

package procgroup_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
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
	begun := time.Now()
	time.AfterFunc(longerThanCollecting, func() { close(w.release) })
	cmd := exec.Command("echo", "all of it")
	cmd.Stdout = w
	r, err := procgroup.Run(context.Background(), cmd, procgroup.WithKillGrace(longLimit))
	took := time.Since(begun) // Elapsed may be less: it begins a little after the timer
	check(t, r, err, want{})
	if w.got.String() != "all of it\n" || took < longerThanCollecting {
		t.Errorf("%q after %v", &w.got, took)
	}
}

// SPEC 6.6, 6.11: processes that the command has left behind still get the time to die,
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

// SPEC 6.14: so it does when a limit or the caller has stopped the command, as far as that
// has a grace, and with orphans kept.
func TestSlowWriterOfAStoppedCommand(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second // for the command to have written by then
	total := procgroup.WithLimits(timeout.Config{Total: limit})
	for _, tt := range []struct {
		name string
		opts []procgroup.Option
		all  bool
	}{
		{"limit", []procgroup.Option{total, procgroup.WithKillGrace(longLimit)}, true},
		{"limit and orphans", []procgroup.Option{total, procgroup.WithKillGrace(longLimit), procgroup.WithOrphans()}, true},
		{"abort", []procgroup.Option{procgroup.WithAbortGrace(longLimit)}, true},
		{"limit without a grace", []procgroup.Option{total, procgroup.WithKillGrace(-1)}, false},
		{"abort without a grace", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newSlowWriter()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			cmd := command("flood", "150000", "stay")
			cmd.Stdout = w
			p, err := procgroup.Start(ctx, cmd, tt.opts...)
			if err != nil {
				t.Fatal(err)
			}
			<-w.writing
			if strings.HasPrefix(tt.name, "abort") {
				cancel()
			}
			if tt.all {
				time.AfterFunc(limit+longerThanCollecting, func() { close(w.release) })
			} else {
				defer close(w.release)
			}
			r, err := p.Wait()
			var stop *timeout.Error
			if !errors.As(err, &stop) || r.PipeHeld {
				t.Fatalf("%v, %+v", err, r)
			}
			slow := stop.Err != nil && strings.Contains(stop.Err.Error(), "not all output was accepted in time")
			w.mu.Lock()
			defer w.mu.Unlock()
			// Its earlier input may still be in the command, which was killed.
			if got := int64(w.got.Len()); got+r.Unwritten != r.Stdout.Total || (r.Unwritten == 0) != tt.all || slow == tt.all {
				t.Errorf("%d of %d bytes written, %d not, %v", got, r.Stdout.Total, r.Unwritten, stop.Err)
			}
		})
	}
}

// SPEC 6.11: a writer that never returns holds up the call for the kill grace and a
// second at the most, and both streams together no longer than one.
func TestBlockedWriterIsLeftBehind(t *testing.T) {
	t.Parallel()
	const grace = time.Second
	best := time.Hour
	for range 20 { // one of them is undisturbed
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
	for begun := time.Now(); statReaped(p.Pid); time.Sleep(time.Millisecond) {
		if s, _ := statOf(p.Pid); s.dead() {
			break
		}
		if time.Since(begun) > slack {
			t.Fatal("the command does not end")
		}
	}
	time.Sleep(5 * time.Second) // for its end to have been seen
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
	for range 20 { // one of them is undisturbed
		cmd := exec.Command("sh", "-c", "sleep 60 & echo $!")
		r, err := procgroup.Run(context.Background(), cmd, procgroup.WithOrphans())
		check(t, r, err, want{held: true})
		killPid(atoi(string(bytes.TrimSpace(r.Stdout.Bytes()))))
		if best = min(best, r.Elapsed); best < 700*time.Millisecond {
			return
		}
	}
	t.Errorf("took %v", best)
}
