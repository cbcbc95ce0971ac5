//go:build linux

package procgroup_test

import (
	"slices"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
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
