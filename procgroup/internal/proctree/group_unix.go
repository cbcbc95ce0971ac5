//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup extends the attributes of cmd, in a copy, so that it leads a process group.
func ownGroup(cmd *exec.Cmd) error {
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	if attr.Pgid != 0 {
		return errors.New("procgroup: SysProcAttr.Pgid is set, but the command needs a process group of its own")
	}
	if attr.Ptrace {
		return errors.New("procgroup: SysProcAttr.Ptrace is set, but a traced command has to be waited for by its tracer")
	}
	if !attr.Setsid { // that makes a group too, and its leader cannot make another
		attr.Setpgid = true
	}
	cmd.SysProcAttr = &attr
	return nil
}

// signalError converts the error of signalling a group to that of Tree.Signal.
func signalError(err error) error {
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return os.NewSyscallError("kill", err)
}
