//go:build unix

package jsonrpc

import (
	"io"
	"syscall"
)

// WriteNow returns a function that writes as many bytes to the pipe w as it can without waiting, and returns their
// number. It returns nil if w is not a file.
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
		_ = conn.Write(func(fd uintptr) bool { // the next write of the Outbox reports an error
			n, _ = syscall.Write(int(fd), p)
			return true
		})
		return max(n, 0)
	}
}
