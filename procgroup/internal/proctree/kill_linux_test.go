package proctree

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A leader that takes its time to die does not save those outside its group: they are killed meanwhile. Here it
// cannot die before they have.
func TestKillDoesNotWaitForTheLeader(t *testing.T) {
	freezer, err := os.MkdirTemp("/sys/fs/cgroup/freezer", "proctree-test")
	if err != nil {
		t.Skip("needs the freezer of cgroup v1, whose members cannot be killed:", err)
	}
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(freezer, file), []byte(text), 0); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		for until := time.Now().Add(time.Minute); os.Remove(freezer) != nil && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
	})
	tree, cmd, _, out := startPerl(t, Descendants, `use POSIX "setsid"; $| = 1;
		if (!fork) { setsid; exit if fork; print "$$\n"; sleep 120; exit }
		wait; sleep 120`)
	var daemon int
	if _, err := fmt.Fscan(out, &daemon); err != nil {
		t.Error(err)
	}
	write("cgroup.procs", strconv.Itoa(cmd.Process.Pid))
	write("freezer.state", "FROZEN")
	for state, until := []byte(nil), time.Now().Add(time.Minute); string(state) != "FROZEN\n" && time.Now().Before(until); {
		state, _ = os.ReadFile(filepath.Join(freezer, "freezer.state"))
	}
	over, thawed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(thawed)
		var r procfs.Reader
		for alive := true; alive; time.Sleep(time.Millisecond) {
			p, ok := r.Process(daemon)
			if alive = ok && !p.Dead(); alive {
				select {
				case <-over:
					alive = false
					t.Error("the daemon lives as long as the leader")
					_ = unix.Kill(daemon, unix.SIGKILL)
				default:
				}
			}
		}
		write("freezer.state", "THAWED")
	}()
	survivors, unidentified := tree.Kill(time.Now().Add(20 * time.Second))
	close(over)
	<-thawed
	if _, reaped := tree.State(); len(survivors)+len(unidentified) > 0 || !reaped {
		t.Errorf("survivors %v, unidentified %v, leader reaped: %v", survivors, unidentified, reaped)
	}
}
