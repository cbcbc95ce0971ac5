package procfs_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A process without descriptors has no open files, which differs from files that cannot be read.
func TestOpenFilesOfNone(t *testing.T) {
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil { // what this process has inherited
		t.Skip(err)
	}
	cmd := exec.Command("sh", "-c", "exec sleep 120 <&- >&- 2>&-")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	harness.Eventually(t, "the process to be without descriptors", func() bool {
		left, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
		return err == nil && len(left) == 0 && procfs.StatusOf(cmd.Process.Pid).State == 'S'
	})
	if all, ok := procfs.Unhurried().OpenFiles(cmd.Process.Pid); !ok || len(all) > 0 {
		t.Errorf("no descriptors: %v, %v", all, ok)
	}
	if all, ok := procfs.Unhurried().OpenFiles(1 << 30); ok {
		t.Errorf("no process: %v, %v", all, ok)
	}
}
