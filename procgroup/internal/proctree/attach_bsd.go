//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// Attach makes cmd.Cancel send stop to the process group and, after grace, kill what is left of it; with a grace of 0
// it kills the group at once. Call Attach before cmd.Start. os/exec may reap the leader at any time, after which the
// group's id can be reused. So the group is probed every few milliseconds: another group is killed only if, between
// two probes, this group becomes empty and a new process gets its id and leads a group.
func Attach(cmd *exec.Cmd, kind Kind, stop syscall.Signal, grace time.Duration) (time.Duration, error) {
	if kind != Auto && kind != Group {
		return 0, unavailable(kind, unsupported("not with Attach"))
	}
	if err := ownGroup(cmd); err != nil {
		return 0, err
	}
	cmd.Cancel = func() error {
		pid := cmd.Process.Pid
		if cmd.Process.Signal(syscall.Signal(0)) != nil {
			return os.ErrProcessDone
		}
		if grace == 0 {
			_ = unix.Kill(-pid, unix.SIGKILL)
			return nil
		}
		_ = unix.Kill(-pid, stop)
		_ = unix.Kill(-pid, unix.SIGCONT)
		go func() {
			deadline := time.Now().Add(grace)
			for b := patient.Backoff(0); unix.Kill(-pid, 0) == nil; {
				if !b.Sleep(deadline) {
					_ = unix.Kill(-pid, unix.SIGKILL)
					return
				}
			}
		}()
		return nil
	}
	return grace, nil
}
