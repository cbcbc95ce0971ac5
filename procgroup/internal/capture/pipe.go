package capture

import (
	"io"
	"sync"
	"syscall"
)

// readSize is the largest number of bytes that one read returns. pipeSize is the capacity of a pipe that has been
// enlarged because the command writes faster than it is read. With these sizes a flood of output passes about as fast
// as through the kernel alone.
const (
	readSize = 256 << 10
	pipeSize = 1 << 20
)

// A buffer holds the bytes of one read.
type buffer [readSize]byte

// buffers is the pool of the buffers of all commands. On Unix a command that writes nothing has no buffer.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// A taker receives the result of a read: the first n bytes of buf or, if n is 0, the end of the stream, where buf may
// be nil. It reports whether it keeps buf, which otherwise returns to the pool.
type taker func(buf *buffer, n int) (kept bool)

// A Source makes a simulated pipe. read reads from the descriptor of r as read(2) does, and returns EAGAIN instead of
// waiting.
type Source func() (r ReadEnd, w io.WriteCloser, read func(fd uintptr, b []byte) (int, error))

// A ReadEnd is the reading end of a simulated pipe. A Capture waits for output through SyscallConn and calls no Read.
type ReadEnd interface {
	io.ReadCloser
	syscall.Conn
}
