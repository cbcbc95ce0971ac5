//go:build linux

package procgroup_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// SPEC 6.6: with the helper, the tree dies with the supervisor, even if that is killed.
func TestSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	cmd, pids := family(t, "run", "helper", "tree", "sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the tree", func() bool { return len(pids()) >= 6 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	harness.Eventually(t, "the tree to die", func() bool { return !slices.ContainsFunc(pids(), alive) })
}

// SPEC 6.6: the tree goes on when its supervisor is killed; its control group
// is removed by the next process that makes one.
func TestSupervisorIsKilledWithoutHelper(t *testing.T) {
	t.Parallel()
	needCgroup(t)
	cmd, pids := family(t, "run", "cgroup", "tree", "sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the tree", func() bool { return len(pids()) >= 6 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	left := cgroupDirs(cmd.Process.Pid)
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	for _, pid := range pids() {
		killPid(pid)
	}
	harness.Eventually(t, "its control group to be removed", func() bool {
		supervise(t, command("run", "cgroup", "exit", "0"))
		return len(cgroupDirs(cmd.Process.Pid)) == 0
	})
}

// The control group of a killed process with the same id, or of one in another process id
// namespace, is in nobody's way.
func TestNamesake(t *testing.T) {
	t.Parallel()
	needCgroup(t)
	if rep := supervise(t, command("namesake")); rep.Contained != "cgroup" || rep.Err != "<nil>" {
		t.Errorf("%+v", rep)
	}
}

func runModeNamesake([]string) int {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := procgroup.Start(ctx, exec.Command("sleep", "60"), procgroup.WithContainment(procgroup.Cgroup))
	if err != nil {
		panic(err)
	}
	first := cgroupDirs(os.Getpid())[0]
	cancel()
	_, _ = p.Wait()
	next := strings.TrimSuffix(first, "1") + "2"
	if err := os.Mkdir(next, 0o755); err != nil {
		panic(err)
	}
	defer os.Remove(next)
	begun := time.Now()
	r, err := procgroup.Run(context.Background(), exec.Command("true"), procgroup.WithContainment(procgroup.Cgroup))
	return say(reportOf(r, err, begun))
}
