package host

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// HungUp returns a function that reports whether the other end of r has been closed, even if r still has data to read.
// It returns nil if r is not a file.
func HungUp(r io.Reader) func() bool {
	file, ok := r.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	return func() (gone bool) {
		_ = conn.Control(func(fd uintptr) {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			n, err := unix.Poll(fds, 0)
			gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLRDHUP) != 0
		})
		return gone
	}
}
