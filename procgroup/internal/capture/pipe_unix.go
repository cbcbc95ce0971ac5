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

// A pipe is the reading end of a pipe, or a terminal. It has two methods to read: next waits for output, and rest
// does not. They may be called concurrently. A buffer is taken from the pool only when there is
// output; [os.File.Read] would need a buffer while it waits.
type pipe struct {
	r     *os.File  // nil in a simulation
	end   io.Closer // r, or the reading end of a simulation
	conn  syscall.RawConn
	read  func(fd uintptr, b []byte) (int, error) // read(2)
	ready func(fd uintptr) bool                   // p.try, made a value once, since each read needs one
	holds int                                     // the most that there is to read at a time, unless the pipe is larger

	mu sync.Mutex // held from a read until received has returned, to keep the order

	// Used by next and try.
	taker taker
	err   error
}

// restEvery is how often rest must be called to notice the end of the stream. It is 0 on Unix, where next notices
// the end.
const restEvery = 0

// newPipe makes a pipe. w is its writing end.
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

// newPipeOf returns a pipe that reads r, which holds so many bytes. If there is an error, it closes r.
func newPipeOf(r *os.File, holds int) (_ *pipe, err error) {
	p := &pipe{r: r, end: r, read: readFD, holds: holds}
	// If the runtime could not poll the pipe, a read would block while the lock is held.
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

// next waits for output or the end of the stream, and calls got with it.
func (p *pipe) next(got taker) error {
	p.taker, p.err = got, nil
	if err := p.conn.Read(p.ready); err != nil {
		return err
	}
	return p.err
}

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

// rest calls got with all available output, and with the end of the stream if that follows.
func (p *pipe) rest(got taker) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cerr := p.conn.Control(func(fd uintptr) {
		for total := 0; ; {
			var n int
			if n, err = p.readOnce(fd, got); n == 0 {
				break
			}
			// All output that was available at the beginning has been read. A process keeps
			// writing, perhaps forever.
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

// readOnce reads once, and calls got unless there is an error. At the end of the stream n is 0.
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

// newPipeFrom makes a pipe of a simulation.
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

// noReader reports whether err is the error of writing to a pipe without a reader, or to a terminal that no process
// has open.
func noReader(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) }
