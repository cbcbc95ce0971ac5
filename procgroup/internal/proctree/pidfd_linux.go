package proctree

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A pidfd is a descriptor of a process: it never refers to another process that got the
// same id later. It is on the runtime's poller, so that waiting costs no thread.
type pidfd struct {
	f    *os.File
	conn syscall.RawConn
}

// openPidfd opens a child. It returns nil if the system has no pidfds (before Linux 5.4), or no descriptors left.
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
	// Neither P_PIDFD nor the poller may be missing, and it must be the child: where the
	// kernel reaps children at once, the id may have become another's before the open.
	if _, err := p.exited(); err != nil || f.SetReadDeadline(time.Time{}) != nil {
		f.Close()
		return nil
	}
	return p
}

// exited reports whether the child has ended, and leaves it a zombie. If somebody else
// has reaped it, it has ended too, and the error is ECHILD.
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

// wait returns when the child has ended or the read deadline of f has come.
func (p *pidfd) wait() error {
	return p.conn.Read(func(fd uintptr) bool {
		ended, err := exitedFd(fd)
		return ended || err != nil
	})
}

// pidfdSignalGroup makes pidfd_send_signal signal the process group. It also works when the process that led the
// group is gone (Linux 6.9).
const pidfdSignalGroup = 1 << 2

var noGroupSignal atomic.Bool // the system does not know that flag

// signalGroup signals the group. It returns ESRCH if the group is empty, and EINVAL if the system cannot signal a
// group by descriptor.
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
