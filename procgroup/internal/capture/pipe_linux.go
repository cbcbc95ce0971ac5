package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// enlargeAt is the size of a read that shows that the pipe was full: what it holds by
// default.
const enlargeAt = 64 << 10

// enlargePipe makes room for what a fast writer has to say while the reader is busy. It
// is done when the need has been seen, because a user's pipes share a quota, and whoever
// exceeds it gets tiny ones. Where it is not allowed, nothing changes.
func enlargePipe(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
	})
}

// capacity is how much the pipe holds at the most.
func capacity(fd uintptr) int {
	n, _ := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
	return n
}
