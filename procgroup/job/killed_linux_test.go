package job_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job"
)

// host starts jobs with the helper, says so, and waits to be killed.
func host() {
	var s job.Set
	for range 3 {
		j, err := s.Start(context.Background(), exec.Command("sh", "-c", "setsid sleep 1000 & (trap '' TERM; sleep 1000) & echo ready; sleep 1000"),
			procgroup.Helper)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		j.Wait(context.Background(), job.Until{Output: true})
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

// SPEC 15.5: with the helper nothing outlives a host that is killed.
func TestHostIsKilled(t *testing.T) {
	t.Parallel()
	mark := leftovers.Mark()
	cmd := harness.Command("host")
	cmd.Env = append(cmd.Env, mark)
	harness.Start(t, cmd, "ready\n")
	harness.Eventually(t, "all to run", func() bool { return len(leftovers.With(mark)) >= 10 }) // in the middle of an exec there is no environment
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	leftovers.None(t, mark)
}
