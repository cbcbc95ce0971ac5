//go:build unix

package ready

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Again reports whether err is that of a file that would have had to wait.
func Again(err error) bool { return errors.Is(err, unix.EAGAIN) }

// An alarm is a pipe, because poll(2) waits for files only.
type alarm struct {
	r, w *os.File // nil if there is none
	fd   int32    // of r
}

// open makes the pipe. Without one, as where descriptors have run out, waits are short.
func (a *alarm) open() {
	var err error
	if a.r, a.w, err = os.Pipe(); err != nil {
		a.r, a.w = nil, nil
		return
	}
	a.fd = int32(a.r.Fd())
}

// ring makes the pipe readable, for all waits.
func (a *alarm) ring() {
	if a.w != nil {
		a.w.Close()
		a.w = nil
	}
}

func (a *alarm) close() {
	a.ring()
	if a.r != nil {
		a.r.Close()
		a.r = nil
	}
}

// poll waits until the file can be read, or written if output is true, has an error, or stop comes, and no longer than
// most. It reports whether the file is ready.
func poll(raw syscall.RawConn, output bool, stop *Stop, most time.Duration) (ready bool) {
	events := int16(unix.POLLIN)
	if output {
		events = unix.POLLOUT
	}
	// Control keeps the descriptor from being closed, and so from being another file, during the wait.
	_ = raw.Control(func(fd uintptr) {
		files := withAlarm(stop, &most, unix.PollFd{Fd: int32(fd), Events: events})
		n, err := unix.Poll(files, int(most.Milliseconds()))
		ready = err == nil && n > 0 && files[0].Revents != 0
	})
	return ready
}

// pause waits until stop comes, and no longer than most.
func pause(stop *Stop, most time.Duration) {
	_, _ = unix.Poll(withAlarm(stop, &most), int(most.Milliseconds()))
}

// withAlarm adds the alarm of stop, which is open because there is a wait.
func withAlarm(stop *Stop, most *time.Duration, files ...unix.PollFd) []unix.PollFd {
	if stop == nil {
		return files
	}
	if stop.alarm.r == nil {
		*most = min(*most, maxPause)
		return files
	}
	return append(files, unix.PollFd{Fd: stop.alarm.fd, Events: unix.POLLIN})
}
