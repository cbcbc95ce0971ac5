//go:build unix

package ready

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Again reports whether err matches EAGAIN, the error of a non-blocking file that would have to wait.
func Again(err error) bool { return errors.Is(err, unix.EAGAIN) }

// attempt calls w.Write. For an *os.File it makes one system call instead, and part reports whether that succeeded, so
// that the rest of p is still to be written. The reason is a file that was non-blocking when package os made it: its
// Write waits until all of p is written, a Stop cannot end the wait, and the number of bytes written is not known.
func attempt(w io.Writer, p []byte) (n int, part bool, err error) {
	f, ok := w.(*os.File)
	if !ok || f == nil || len(p) == 0 {
		n, err = w.Write(p)
		return n, false, err
	}
	raw, err := f.SyscallConn()
	if err == nil {
		if rerr := raw.Write(func(fd uintptr) bool {
			for err = unix.EINTR; err == unix.EINTR; {
				// Package syscall tells the race detector that what was written comes before what is read.
				n, err = syscall.Write(int(fd), p[:min(len(p), maxWrite)])
			}
			return true
		}); rerr != nil {
			n, err = 0, rerr
		}
		n = max(n, 0)
	}
	if n > 0 || Again(err) {
		return n, err == nil, err
	}
	n, err = f.Write(p) // for the error of package os, which also ends a program if its standard output has no reader
	return n, false, err
}

// maxWrite is the largest number of bytes that some systems accept in one write, as in package os.
const maxWrite = 1 << 30

// An alarm is a pipe that ends the waits of poll(2), which waits for files only.
type alarm struct {
	r, w *os.File // nil if there is no pipe
	fd   int32    // the descriptor of r
}

// open makes the pipe. If that fails, because no descriptor is left, the alarm has no pipe, and waits are short.
func (a *alarm) open() {
	var err error
	if a.r, a.w, err = os.Pipe(); err != nil {
		a.r, a.w = nil, nil
		return
	}
	a.fd = int32(a.r.Fd())
}

// ring makes the pipe readable, which ends all waits.
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

// poll waits until the file can be read, or written if output is true, until it has an error, or until stop ends the
// wait, but not longer than most. It reports whether the file is ready or has an error, and returns false if the file
// is closed.
func poll(raw syscall.RawConn, output bool, stop *Stop, most time.Duration) (ready bool) {
	file := unix.PollFd{Events: unix.POLLIN}
	if output {
		file.Events = unix.POLLOUT
	}
	// Control keeps the descriptor open, so that its number cannot become that of another file during the wait.
	_ = raw.Control(func(fd uintptr) {
		file.Fd = int32(fd)
		files := withAlarm(stop, &most, file)
		n, err := unix.Poll(files, int(most.Milliseconds()))
		ready = err == nil && n > 0 && files[0].Revents != 0
	})
	return ready
}

// pause waits until stop ends the wait, but not longer than most.
func pause(stop *Stop, most time.Duration) {
	_, _ = unix.Poll(withAlarm(stop, &most), int(most.Milliseconds()))
}

// withAlarm returns the files to poll: the given ones and the alarm of stop. If the alarm has no pipe, it shortens most
// instead, so that the caller soon checks stop. It is called between begin and end of stop.
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
