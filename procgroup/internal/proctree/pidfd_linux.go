package proctree

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A pidfd is a file descriptor that refers to one process, and never to a later process with the same id. The runtime's
// poller watches it, so that a wait occupies no thread.
type pidfd struct {
	f    *os.File
	conn syscall.RawConn
}

// openPidfd opens a pidfd of a child. It returns nil if that fails: before Linux 5.10, for lack of descriptors, or
// because other code has reaped the child.
func openPidfd(pid int) *pidfd {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil
	}
	p := &pidfd{f, conn}
	// The first check fails without P_PIDFD, or if the process is no child of this one: a host that ignores SIGCHLD
	// leaves no zombies, so the id may have been reused before the open. The second fails without support by the poller.
	if _, err := p.exited(); err != nil || f.SetReadDeadline(time.Time{}) != nil {
		f.Close()
		return nil
	}
	return p
}

// exited reports whether the child has ended, and leaves it a zombie. If other code has reaped the child, it returns
// true and ECHILD.
func (p *pidfd) exited() (ended bool, err error) {
	cerr := p.conn.Control(func(fd uintptr) { ended, err = exitedFd(fd) })
	if cerr != nil {
		return false, cerr
	}
	return ended, err
}

func exitedFd(fd uintptr) (bool, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PIDFD, int(fd), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		switch err {
		case nil:
			return info.Signo != 0, nil
		case unix.ECHILD:
			return true, err
		case unix.EINTR:
		default:
			return false, err
		}
	}
}

// wait waits for the end of the child. It returns nil once the child has ended, other code has reaped it, or its state
// cannot be read. It returns an error if the read deadline of f passes first, or f is closed.
func (p *pidfd) wait() error {
	return p.conn.Read(func(fd uintptr) bool {
		ended, err := exitedFd(fd)
		return ended || err != nil
	})
}

// pidfdSignalGroup is the flag PIDFD_SIGNAL_PROCESS_GROUP, from Linux 6.9 on. It makes pidfd_send_signal(2) signal the
// group that the process leads, or led before it ended.
const pidfdSignalGroup = 1 << 2

// noGroupSignal is set when the kernel has rejected pidfdSignalGroup.
var noGroupSignal atomic.Bool

// signalGroup sends sig to the process group that the process leads. It returns ESRCH if the group is empty, and EINVAL
// if the kernel cannot signal a group by a pidfd.
func (p *pidfd) signalGroup(sig unix.Signal) (err error) {
	if noGroupSignal.Load() {
		return unix.EINVAL
	}
	cerr := p.conn.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), sig, nil, pidfdSignalGroup) })
	if cerr != nil {
		return cerr
	}
	if err == unix.EINVAL {
		noGroupSignal.Store(true)
	}
	return err
}

func (p *pidfd) close() { p.f.Close() }
