//go:build unix

package capture

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// A pipe is the reading end of a pipe, or this process's side of a terminal. It has two methods to read: next, for one
// goroutine, waits for output, and rest does not wait. They may be called concurrently. Neither holds a buffer of the
// pool while it waits, as [os.File.Read] would.
type pipe struct {
	r     *os.File  // nil in a simulation
	end   io.Closer // r, or the reading end of a simulated pipe
	conn  syscall.RawConn
	read  func(fd uintptr, b []byte) (int, error) // read(2), or that of a simulation
	ready func(fd uintptr) bool                   // p.try, as a value that is made only once
	holds int                                     // unread bytes that fit; a pipe may hold more, see capacity

	mu sync.Mutex // held from a read until the taker has returned, so that output keeps its order

	// The callback and the result of the next in progress.
	taker taker
	err   error
}

// restEvery is how often Drain must call rest to find the end of the stream. On Unix it is 0, which means never: the
// next of the collector finds the end.
const restEvery = 0

// newPipe makes a pipe of the system. w is its writing end.
func newPipe() (_ *pipe, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p, err := newPipeOf(r, pipeSize)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return p, w, nil
}

// newPipeOf returns a pipe that reads from r, in which holds unread bytes fit. On an error it closes r.
func newPipeOf(r *os.File, holds int) (_ *pipe, err error) {
	p := &pipe{r: r, end: r, read: readFD, holds: holds}
	// An error means that the runtime cannot poll r. Then a read would block while it holds the lock.
	if err = r.SetReadDeadline(time.Time{}); err == nil {
		p.conn, err = r.SyscallConn()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	p.ready = p.try
	return p, nil
}

// next waits for output or the end of the stream, and calls got with it. On an error, such as os.ErrClosed after close,
// it does not call got.
func (p *pipe) next(got taker) error {
	p.taker, p.err = got, nil
	if err := p.conn.Read(p.ready); err != nil {
		return err
	}
	return p.err
}

// try reads once for next, and reports whether next is done. It returns false if there is nothing to read yet.
func (p *pipe) try(fd uintptr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, p.err = p.readOnce(fd, p.taker)
	if p.err == syscall.EAGAIN {
		p.err = nil
		return false
	}
	return true
}

// rest calls got with all output that is available when rest is called, and with the end of the stream if that follows.
func (p *pipe) rest(got taker) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cerr := p.conn.Control(func(fd uintptr) {
		for total := 0; ; {
			var n int
			if n, err = p.readOnce(fd, got); n == 0 {
				break
			}
			// The pipe cannot have held more at the beginning. A process keeps writing, perhaps forever.
			if total += n; total >= p.holds && total >= capacity(fd) {
				break
			}
		}
	})
	if cerr != nil {
		return cerr
	}
	if err == syscall.EAGAIN {
		return nil
	}
	return err
}

// readOnce reads once without waiting, and calls got unless there is an error. At the end of the stream n is 0. The
// error is EAGAIN if there is nothing to read. The caller holds p.mu.
func (p *pipe) readOnce(fd uintptr, got taker) (n int, err error) {
	buf := buffers.Get().(*buffer)
	for {
		n, err = p.read(fd, buf[:])
		if err != syscall.EINTR {
			break
		}
	}
	if err == syscall.EIO { // the end of a terminal, on Linux
		n, err = 0, nil
	}
	if err != nil || !got(buf, n) {
		buffers.Put(buf)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

func readFD(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

func (p *pipe) close() { p.end.Close() }

// newPipeFrom makes a simulated pipe. The second result is its writing end.
func newPipeFrom(make Source) (*pipe, io.WriteCloser, error) {
	r, w, read := make()
	conn, err := r.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	p := &pipe{end: r, conn: conn, read: read, holds: pipeSize}
	p.ready = p.try
	return p, w, nil
}

// noReader reports whether err is the error of a write to a pipe that has no reader, or to a terminal that no process
// has open.
func noReader(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) }
