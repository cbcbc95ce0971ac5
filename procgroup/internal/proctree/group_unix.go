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

// ownGroup extends the attributes of cmd, in a copy, so that it leads a process group: that of a session of its own,
// unless the caller has asked for something else or its stdin is a terminal. A group without a session would be
// stopped for ever when it asks the terminal of this process for something. In a session of its own it has no
// terminal, and such a request fails at once. But with a terminal as its stdin it would take what is typed for
// others.
//
// On Linux a session is a scheduling group, too, which has to wait for its first turn: on a busy machine the start of a
// command takes twice as long. Rejected: a session only where this process has a terminal. The scheduling group also
// keeps the command from taking the turns of this process, which otherwise is late for heartbeats and limits. And a
// process that stops itself as Ctrl-Z does (SIGTSTP) would stay stopped: in a session of its own nobody could continue
// it, so it goes on.
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
	if !attr.Setsid { // a session comes with a group, and its leader cannot make another
		attr.Setpgid = true
	}
	cmd.SysProcAttr = &attr
	return nil
}

// isTerminal reports whether a command that reads in would read a terminal. It reports false for a file whose file
// system does not answer: a FUSE server is asked for the result of an ioctl(2) even of a regular file.
func isTerminal(in io.Reader) (yes bool) {
	f, ok := in.(*os.File)
	if !ok || f == nil {
		return false
	}
	raw, err := f.SyscallConn() // Fd would make it block
	if err != nil {
		return false
	}
	asked := new(struct{ err, group error }) // filled in by a call that may outlast Within
	if !patient.Within(patient.Patience, f, func() {
		asked.err = raw.Control(func(fd uintptr) {
			if asked.group = unix.ENOTTY; isDevice(int(fd)) {
				_, asked.group = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) // succeeds only for the controlling terminal of this process
			}
		})
	}) {
		return false
	}
	return asked.err == nil && asked.group == nil
}

// signalError converts the error of signalling a group to that of Tree.Signal.
func signalError(err error) error {
	if err == syscall.ESRCH {
		return os.ErrProcessDone
	}
	return os.NewSyscallError("kill", err)
}

// LeadTerminal extends the attributes of cmd, in a copy, so that it leads a session whose terminal is its standard
// input. With orphans it leads a session without a terminal: the system ends the foreground of a terminal (SIGHUP)
// when the leader of its session ends, and in most commands everything is in the foreground. It returns an error if
// SysProcAttr has a field that contradicts this.
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
