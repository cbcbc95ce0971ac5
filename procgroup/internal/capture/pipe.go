package capture

import (
	"io"
	"sync"
	"syscall"
)

// readSize is how many bytes are read at a time. pipeSize is the capacity of a pipe that has been
// enlarged because the command writes faster than it is read. With these sizes a flood of output
// is about as fast as through the kernel alone.
const (
	readSize = 256 << 10
	pipeSize = 1 << 20
)

// A buffer has the bytes of one read.
type buffer [readSize]byte

// buffers are shared by all commands. A buffer is taken when there is output, so that a command
// that prints nothing has none.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// A taker is called with the result of a read: n bytes, or 0 at the end of the stream. It reports
// whether it keeps buf, which otherwise returns to the pool. At the end buf may be nil.
type taker func(buf *buffer, n int) (kept bool)

// A Source makes a pipe of a simulation. read is read(2) for its reading end, without waiting.
type Source func() (r ReadEnd, w io.WriteCloser, read func(fd uintptr, b []byte) (int, error))

// A ReadEnd is the reading end of a pipe of a simulation. The reading goes through its raw connection.
type ReadEnd interface {
	io.ReadCloser
	syscall.Conn
}
