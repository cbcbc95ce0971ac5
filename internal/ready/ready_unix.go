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

// Again reports whether err is EAGAIN, the error of a file that does not block and would have to wait.
func Again(err error) bool { return errors.Is(err, unix.EAGAIN) }

// attempt is w.Write. Of a file it does one system call, and part means that the rest is still to be tried: if package
// os has found a file non-blocking when it made it, its Write waits until everything is written, no Stop ends that, and
// nobody knows how far it is.
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
	n, err = f.Write(p) // the error is that of package os, which also ends a program whose standard output has no reader
	return n, false, err
}

// maxWrite is what some systems take at once, as in package os.
const maxWrite = 1 << 30

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
	file := unix.PollFd{Events: unix.POLLIN}
	if output {
		file.Events = unix.POLLOUT
	}
	// Control keeps the descriptor from being closed, and so from being another file, during the wait.
	_ = raw.Control(func(fd uintptr) {
		file.Fd = int32(fd)
		files := withAlarm(stop, &most, file)
		n, err := unix.Poll(files, int(most.Milliseconds()))
		ready = err == nil && n > 0 && files[0].Revents != 0
	})
	return ready
}

// pause waits until stop comes, and no longer than most.
func pause(stop *Stop, most time.Duration) {
	_, _ = unix.Poll(withAlarm(stop, &most), int(most.Milliseconds()))
}

// withAlarm returns the files to poll: the given ones and the alarm of stop. If stop has no alarm, it shortens most
// instead, so that the caller soon looks whether stop has come. The caller is between begin and end of stop.
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
