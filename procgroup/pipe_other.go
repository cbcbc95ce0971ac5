//go:build !unix

package procgroup

import (
	"io"
	"os"
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
