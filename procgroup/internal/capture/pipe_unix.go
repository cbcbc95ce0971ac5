//go:build unix

package capture

import (
	"errors"
	"os"
	"syscall"
)

// A pipeReader takes a buffer only once there is something to read. [os.File.Read]
// would need one for as long as it waits.
type pipeReader struct {
	conn  syscall.RawConn
	ready func(fd uintptr) bool // try, made once

	buf *[readSize]byte
	n   int
	err error
}

func newPipeReader(f *os.File) (*pipeReader, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &pipeReader{conn: conn}
	r.ready = r.try
	return r, nil
}

// read gives a buffer of the pool with n bytes in it. At the end of the stream n is 0
// and err nil.
func (r *pipeReader) read() (buf *[readSize]byte, n int, err error) {
	r.buf, r.n, r.err = nil, 0, nil
	if err := r.conn.Read(r.ready); err != nil {
		return r.buf, 0, err
	}
	return r.buf, max(r.n, 0), r.err
}

func (r *pipeReader) try(fd uintptr) bool {
	r.buf = buffers.Get().(*[readSize]byte)
	for {
		r.n, r.err = syscall.Read(int(fd), r.buf[:])
		if r.err != syscall.EINTR {
			break
		}
	}
	if r.err != syscall.EAGAIN {
		return true
	}
	buffers.Put(r.buf)
	r.buf = nil
	return false
}

// noReader reports whether err is that of writing to a pipe that nobody reads any more.
func noReader(err error) bool { return errors.Is(err, syscall.EPIPE) }
