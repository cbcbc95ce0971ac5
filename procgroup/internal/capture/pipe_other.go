//go:build !unix

package capture

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// A pipeReader reads into buffers of the pool.
type pipeReader struct{ f *os.File }

func newPipeReader(f *os.File) (*pipeReader, error) { return &pipeReader{f}, nil }

// read gives a buffer of the pool with n bytes in it. At the end of the stream n is 0
// and err nil.
func (r *pipeReader) read() (buf *[readSize]byte, n int, err error) {
	buf = buffers.Get().(*[readSize]byte)
	n, err = r.f.Read(buf[:])
	if err == io.EOF {
		err = nil
	}
	return buf, max(n, 0), err
}

// noReader reports whether err is that of writing to a pipe that nobody reads any more.
func noReader(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // Windows; ERROR_BROKEN_PIPE, ERROR_NO_DATA
	return errors.Is(err, brokenPipe) || errors.Is(err, noData)
}
