//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// newExitQueue returns a kernel queue for waitUnreaped. Start calls it before it starts the command, when it can still
// return an error.
func newExitQueue() (int, error) {
	kq, err := unix.Kqueue()
	if err != nil {
		return -1, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(kq)
	return kq, nil
}

// waitUnreaped waits until the child has ended, and leaves it a zombie. It occupies a thread: the runtime's poller
// watches descriptors for both reading and writing, and so does not accept a kernel queue, which can be watched only
// for reading.
func waitUnreaped(kq, pid int) {
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for b := patient.Backoff(0); ; {
		var events [1]unix.Kevent_t
		n, err := unix.Kevent(kq, change[:], events[:], nil)
		if n == 1 && events[0].Flags&unix.EV_ERROR != 0 {
			err = syscall.Errno(events[0].Data)
		}
		switch {
		case err == nil && n == 1:
			return
		case err == unix.ESRCH:
			return // some systems report this for a child that is already a zombie
		case err == nil || err == unix.EINTR:
		default:
			// The system may be out of memory. The loop tries again, because a return means that the child has ended.
			b.Sleep(time.Now().Add(patient.MaxBackoff))
		}
	}
}
