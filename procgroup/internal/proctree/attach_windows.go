package proctree

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// Attach makes cmd.Cancel ask the group to end, if there is a console, and kill the process after the
// grace. The process cannot be put into a job before it starts others, because os/exec does not
// report when it has started.
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
		// This must follow the opening of the handle: if the process has not been waited for
		// by now, the handle is that of the process. os/exec has no other way to find out.
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
