package proctree

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// Attach makes cmd.Cancel send Ctrl-Break to the process group, and kill the process after grace. It kills the process
// at once if grace is 0 or Ctrl-Break cannot be sent. Call Attach before cmd.Start. There is no job object: os/exec
// does not report the start of a process, so the process could start others before it is assigned to a job.
func Attach(cmd *exec.Cmd, kind Kind, _ syscall.Signal, grace time.Duration) (time.Duration, error) {
	if kind != Auto && kind != Leader {
		return 0, unavailable(kind, unsupported("not with Attach"))
	}
	sameConsole := ownGroup(cmd)
	cmd.Cancel = func() error {
		pid := cmd.Process.Pid
		if grace == 0 || !sameConsole {
			return cmd.Process.Kill()
		}
		h, err := openProcess(pid)
		if err != nil {
			return cmd.Process.Kill()
		}
		// This must follow the opening of the handle: if the process has not been waited for by now, the handle refers
		// to it. The error of Signal is the only way to learn that from os/exec.
		if cmd.Process.Signal(os.Interrupt) == os.ErrProcessDone {
			windows.CloseHandle(h)
			return os.ErrProcessDone
		}
		if !askGroup(pid) {
			windows.CloseHandle(h)
			return cmd.Process.Kill()
		}
		go func() {
			defer windows.CloseHandle(h)
			const longest = windows.INFINITE - 1 // 49 days
			if event, _ := windows.WaitForSingleObject(h, uint32(min(grace.Milliseconds(), longest))); event != windows.WAIT_OBJECT_0 {
				_ = windows.TerminateProcess(h, killedCode)
			}
		}()
		return nil
	}
	return grace, nil
}
