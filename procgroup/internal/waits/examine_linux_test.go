package waits

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

type members struct {
	pids  []int
	whole bool
}

func (m members) Patience() *procfs.Patience { return procfs.NewPatience(time.Minute) }
func (m members) Members() (all []procfs.Process, whole bool) {
	for _, pid := range m.pids {
		if p, ok := procfs.Unhurried().Process(pid); ok {
			all = append(all, p)
		}
	}
	return all, m.whole
}

// SPEC 6.18: a look says whether something of the tree runs, or may run, beside what it has found: then the processor time
// that was read before says nothing.
func TestExamine(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	start := func(cmd *exec.Cmd) (pid int) {
		cmd.Stdin = r
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd.Process.Pid
	}
	cat, busy := start(exec.Command("cat")), start(exec.Command("sh", "-c", "while :; do :; done"))
	in, ok := InputOf(r)
	if !ok {
		t.Skip("this system does not show what processes wait for")
	}
	harness.Eventually(t, "cat to read", func() bool {
		state, pid, all, running := examine(members{[]int{cat}, true}, in.file)
		return state == InputCertainly && pid == cat && len(all) == 1 && !running
	})
	for name, tt := range map[string]struct {
		of      members
		state   State
		running bool
	}{
		"and another one runs":            {members{[]int{cat, busy}, true}, InputIfPrompted, true},
		"none is known":                   {members{nil, true}, None, true},
		"one that has left is not listed": {members{[]int{cat}, false}, None, false},
	} {
		if state, _, _, running := examine(tt.of, in.file); state != tt.state || running != tt.running {
			t.Errorf("%s: %v, running %v", name, state, running)
		}
	}
}
