//go:build unix

package jsonrpc

import (
	"io"
	"syscall"
)

// WriteNow returns a function that writes as many bytes to w, which is a pipe, as it has room for, and returns
// how many that were.
func WriteNow(w io.Writer) func([]byte) int {
	file, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	return func(p []byte) (n int) {
		_ = conn.Write(func(fd uintptr) bool { // a pipe that is broken is found by the goroutine
			n, _ = syscall.Write(int(fd), p)
			return true
		})
		return max(n, 0)
	}
}
