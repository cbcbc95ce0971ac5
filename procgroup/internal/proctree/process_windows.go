package proctree

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ownGroup makes cmd lead a process group, to which Ctrl-Break can be sent, in a copy of cmd.SysProcAttr. It reports
// whether the command will share the host's console, if the host has one.
func ownGroup(cmd *exec.Cmd) (sameConsole bool) {
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP
	cmd.SysProcAttr = &attr
	const other = windows.CREATE_NEW_CONSOLE | windows.CREATE_NO_WINDOW | windows.DETACHED_PROCESS
	return attr.CreationFlags&other == 0
}

// startSuspended starts cmd suspended, calls admit, which assigns the process to its job, and then resumes the process,
// unless the caller has set CREATE_SUSPENDED. If startSuspended returns an error, cmd is not running.
//
// Until admit returns, the process is in no job: if the host is killed at that moment, the process remains, suspended.
// os/exec has no way to start a process in a job.
func startSuspended(cmd *exec.Cmd, admit func() error) error {
	flags := &cmd.SysProcAttr.CreationFlags
	wanted := *flags&windows.CREATE_SUSPENDED != 0 // the caller will resume the process
	*flags |= windows.CREATE_SUSPENDED
	if err := cmd.Start(); err != nil {
		return err
	}
	err := admit()
	if err == nil && !wanted {
		err = resume(uint32(cmd.Process.Pid))
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return err
}

// resume resumes a process that was started suspended. The process has one thread, which resume has to find, because
// os/exec has closed its handle.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(snapshot)
	var e windows.ThreadEntry32
	e.Size = uint32(unsafe.Sizeof(e))
	for err = windows.Thread32First(snapshot, &e); err == nil; err = windows.Thread32Next(snapshot, &e) {
		if e.OwnerProcessID == pid {
			return resumeThread(e.ThreadID)
		}
	}
	if err == windows.ERROR_NO_MORE_FILES {
		err = errors.New("the suspended process has no thread")
	}
	return os.NewSyscallError("Thread32Next", err)
}

func resumeThread(id uint32) error {
	thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, id)
	if err != nil {
		return os.NewSyscallError("OpenThread", err)
	}
	defer windows.CloseHandle(thread)
	_, err = windows.ResumeThread(thread)
	return os.NewSyscallError("ResumeThread", err)
}

// openProcess returns a handle of a process that os/exec has started and not waited for. As long as the handle is open,
// no other process and no other group gets the same id.
func openProcess(pid int) (windows.Handle, error) {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, uint32(pid))
	return h, os.NewSyscallError("OpenProcess", err)
}

// askGroup sends Ctrl-Break to the process group, and reports whether that succeeded. The group must share the console
// of the host. A Go program receives Ctrl-Break as os.Interrupt; other programs end by default.
func askGroup(pid int) bool {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(pid)) == nil
}
