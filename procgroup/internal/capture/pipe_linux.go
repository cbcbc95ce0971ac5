package capture

import (
	"os"

	"golang.org/x/sys/unix"
)

// enlargeAt is the default capacity of a pipe. A read of that size shows that the pipe was full.
const enlargeAt = 64 << 10

// enlargePipe enlarges a pipe, so that a fast writer can go on while the reader is busy. The collector calls it only
// once a pipe was full: the pipes of a user share a quota, and a user who exceeds it gets tiny pipes. If the system
// refuses, the pipe keeps its size.
func enlargePipe(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize)
	})
}

// capacity returns the number of bytes that a pipe can hold, or -1 for any other file.
func capacity(fd uintptr) int {
	n, _ := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
	return n
}
