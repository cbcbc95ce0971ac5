package procgroup_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// SPEC 6.6, 6.11: where the system shows no processes, a helper that is too slow is the only one that can still kill those
// of its command: it is left to do so, and listed.
func TestSlowHelperOfWhatIsNotShown(t *testing.T) {
	cmd := command("waits")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var pids []int
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	p, err := procgroup.Start(ctx, cmd, procgroup.Helper, procgroup.Capture{Each: procgroup.Lines(func(line string, _ bool) {
		if pid, err := strconv.Atoi(line); err == nil {
			pids = append(pids, pid)
		} else if line == "ready" {
			close(ready)
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	never := make(chan struct{})
	stall := func(name string, _ int) {
		if name == "PIDs" || name == "LastPID" {
			<-never
		}
	}
	procfs.Stall.Store(&stall)
	helper, over := cmd.Process.Pid, make(chan struct{})
	var stops sync.WaitGroup
	stops.Go(func() { // whatever lets it go on
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Microsecond):
				_ = unix.Kill(helper, unix.SIGSTOP)
			}
		}
	})
	cancel()
	r, _ := p.Wait()
	close(over)
	stops.Wait()
	procfs.Stall.Store(nil)
	close(never)
	if slices.ContainsFunc(pids, alive) && !slices.Contains(r.Survivors, helper) {
		t.Errorf("some of %v live on, and the helper %d is not listed: %v, %v", pids, helper, r.Survivors, r.Unidentified)
	}
	_ = unix.Kill(helper, unix.SIGCONT)
	harness.Eventually(t, "the end of all processes", func() bool { return !slices.ContainsFunc(pids, alive) })
}
