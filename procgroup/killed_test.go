//go:build linux

package procgroup_test

import (
	"testing"
	"time"
)

// Case 20: with the helper, the tree dies with the supervisor, even if that is killed.
func TestSupervisorIsKilled(t *testing.T) {
	cmd, pids := family(t, "run", "helper", "tree", "sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); len(pids()) < 6; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > slack {
			t.Fatalf("the tree has only %d processes", len(pids()))
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for begun := time.Now(); time.Since(begun) < slack; time.Sleep(5 * time.Millisecond) {
		living := 0
		for _, pid := range pids() {
			if alive(pid) {
				living++
			}
		}
		if living == 0 {
			return
		}
	}
	mustBeDead(t, pids())
}

// Case 20, otherwise: the tree goes on when its supervisor is killed; its control group
// is removed by the next process that makes one.
func TestSupervisorIsKilledWithoutHelper(t *testing.T) {
	needCgroup(t)
	cmd, pids := family(t, "run", "cgroup", "tree", "sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); len(pids()) < 6; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > slack {
			t.Fatalf("the tree has only %d processes", len(pids()))
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	left := cgroupDirs(cmd.Process.Pid)
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	for _, pid := range pids() {
		killPid(pid)
	}
	for begun := time.Now(); len(cgroupDirs(cmd.Process.Pid)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > slack {
			t.Fatalf("still there: %v", left)
		}
		supervise(t, command("run", "cgroup", "exit", "0"))
	}
}
