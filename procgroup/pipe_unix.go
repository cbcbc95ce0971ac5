//go:build unix

package procgroup

import (
	"os"
	"syscall"
)

// A pipeReader takes a buffer only once there is something to read. [os.File.Read]
// would need one for as long as it waits.
type pipeReader struct{ conn syscall.RawConn }

func newPipeReader(f *os.File) (*pipeReader, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &pipeReader{conn}, nil
}

// read gives a buffer of the pool with n bytes in it. At the end of the stream n is 0
// and err nil.
func (r *pipeReader) read() (buf *[readSize]byte, n int, err error) {
	waitErr := r.conn.Read(func(fd uintptr) bool {
		buf = buffers.Get().(*[readSize]byte)
		for {
			n, err = syscall.Read(int(fd), buf[:])
			if err != syscall.EINTR {
				break
			}
		}
		if err != syscall.EAGAIN {
			return true
		}
		buffers.Put(buf)
		buf = nil
		return false
	})
	if waitErr != nil {
		return buf, 0, waitErr
	}
	return buf, max(n, 0), err
}
