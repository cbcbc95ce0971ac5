//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// newExitQueue makes a kernel queue for waitUnreaped, before the start: afterwards it
// would be too late to fail.
func newExitQueue() (int, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return -1, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(kq)
	return kq, nil
}

// waitUnreaped returns when the child has ended, and leaves it a zombie. It costs a
// thread: the runtime's poller watches a descriptor for reading and writing, and a kernel
// queue can only be watched for reading, so it does not take one.
func waitUnreaped(kq, pid int) {
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for b := backoff(0); ; {
		var events [1]unix.Kevent_t
		n, err := unix.Kevent(kq, change[:], events[:], nil)
		if n == 1 && events[0].Flags&unix.EV_ERROR != 0 {
			err = syscall.Errno(events[0].Data)
		}
		switch {
		case err == nil && n == 1:
			return
		case err == unix.ESRCH:
			return // some systems say this of a child that is a zombie already
		case err == nil || err == unix.EINTR:
		default:
			// Out of memory, say. To give up would mean that the child has ended.
			b.sleep(time.Now().Add(maxBackoff))
		}
	}
}
