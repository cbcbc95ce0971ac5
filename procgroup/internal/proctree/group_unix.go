//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"golang.org/x/sys/unix"
)

// ownGroup makes cmd lead a process group, in a copy of cmd.SysProcAttr. The group gets a session of its own, unless
// the caller has set Setpgid or Foreground, or stdin is a terminal. A background group in the session of this process
// would be stopped for ever when it reads the terminal; in its own session it has no terminal, and the read fails at
// once. With the terminal as stdin, however, nothing would stop it in its own session, and it would read what is typed
// for other programs. ownGroup returns an error if Pgid or Ptrace is set.
//
// On Linux a session is also a scheduling group. A new one waits for its first turn, so that on a busy machine the
// start of a command takes twice as long. The command gets one nevertheless, even if this process has no terminal:
// otherwise the command can delay the heartbeats and limits of this process, and a process of the command that sends
// itself SIGTSTP, as for Ctrl-Z, stays stopped. In a session of its own, where nothing could continue the process, the
// system ignores that signal.
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
	if !attr.Setpgid && !attr.Foreground && !isTerminal(cmd.Stdin) {
		attr.Setsid = true
	}
	if !attr.Setsid { // setsid(2) makes a group too, and forbids setpgid(2)
		attr.Setpgid = true
	}
	cmd.SysProcAttr = &attr
	return nil
}

// isTerminal reports whether in is the controlling terminal of this process. It returns false if the file system of in
// does not answer in time. It calls ioctl(2) only for a character device, because the kernel passes an ioctl(2) of a
// regular file on to its FUSE server.
func isTerminal(in io.Reader) (yes bool) {
	f, ok := in.(*os.File)
	if !ok || f == nil {
		return false
	}
	raw, err := f.SyscallConn() // Fd would set the file to blocking mode
	if err != nil {
		return false
	}
	asked := new(struct{ err, group error }) // set by a call that may outlast Within
	if !patient.Within(patient.Patience, f, func() {
		asked.err = raw.Control(func(fd uintptr) {
			if asked.group = unix.ENOTTY; isDevice(int(fd)) {
				_, asked.group = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) // fails unless fd is the controlling terminal
			}
		})
	}) {
		return false
	}
	return asked.err == nil && asked.group == nil
}

// signalError converts an error of kill(2) to an error of Tree.Signal: it returns os.ErrProcessDone for ESRCH.
func signalError(err error) error {
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return os.NewSyscallError("kill", err)
}

// LeadTerminal makes cmd lead a session whose controlling terminal is its standard input, in a copy of
// cmd.SysProcAttr. If orphans is set, the session has no controlling terminal: when a session leader ends, the system
// sends SIGHUP to the foreground group of its terminal, which would end most of the processes that the leader leaves
// behind. LeadTerminal returns an error if Setpgid, Foreground, Setctty or Noctty is set.
func LeadTerminal(cmd *exec.Cmd, orphans bool) error {
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	for _, field := range []struct {
		name string
		set  bool
	}{{"Setpgid", attr.Setpgid}, {"Foreground", attr.Foreground}, {"Setctty", attr.Setctty}, {"Noctty", attr.Noctty}} {
		if field.set {
			return fmt.Errorf("procgroup: SysProcAttr.%s is set, but in a terminal of its own the command leads a session of its own", field.name)
		}
	}
	attr.Setsid, attr.Setctty, attr.Ctty = true, !orphans, 0
	cmd.SysProcAttr = &attr
	return nil
}
