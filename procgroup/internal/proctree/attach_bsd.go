//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Attach makes Cancel end the group. os/exec reaps the leader at any time, so what keeps
// the group's id from meaning another group is that it is looked at all the time: from
// one look to the next it would have to become empty, be given out again, and become a
// group again.
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
			for b := backoff(0); unix.Kill(-pid, 0) == nil; {
				if !b.sleep(deadline) {
					_ = unix.Kill(-pid, unix.SIGKILL)
					return
				}
			}
		}()
		return nil
	}
	return grace, nil
}
