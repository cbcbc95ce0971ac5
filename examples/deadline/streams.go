//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// stdStreams are the standard streams as the command is to have them: nil for one that
// was closed when we were started.
func stdStreams() []*os.File {
	streams := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for fd := range streams {
		if wasClosed(fd) {
			streams[fd] = nil
		}
	}
	return streams
}

// readNow reads what is in a pipe, without waiting for more. It gives 0 if there is
// nothing.
func readNow(f *os.File, p []byte) (n int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, _ = unix.Read(int(fd), p)
		return true
	})
	return max(n, 0)
}
