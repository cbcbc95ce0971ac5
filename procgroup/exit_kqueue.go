//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package procgroup

import (
	"os"

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
// thread.
func waitUnreaped(kq, pid int) {
	var change [1]unix.Kevent_t
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for {
		var events [1]unix.Kevent_t
		// A child that is a zombie already is either an event at once or an error, ESRCH.
		n, err := unix.Kevent(kq, change[:], events[:], nil)
		if err == unix.EINTR || (err == nil && n == 0) {
			continue
		}
		return
	}
}
