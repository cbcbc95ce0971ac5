//go:build unix

package capture

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// A pipe is the reading end of one, which two may read: next, which waits, and rest, which
// does not. A buffer is taken only once there is something to read; [os.File.Read] would
// need one for as long as it waits.
type pipe struct {
	r     *os.File
	conn  syscall.RawConn
	ready func(fd uintptr) bool // try, made once

	mu sync.Mutex // held from a read until got has returned, so that nothing overtakes

	// For next and try.
	got taker
	err error
}

// restEvery is how often rest must be called by who waits for the end. Here next sees it.
const restEvery = 0

// newPipe makes a pipe. w is the other end.
func newPipe() (_ *pipe, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p := &pipe{r: r}
	// A pipe that the runtime cannot poll would be read by blocking, with the lock held.
	if err = r.SetReadDeadline(time.Time{}); err == nil {
		p.conn, err = r.SyscallConn()
	}
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, err
	}
	p.ready = p.try
	return p, w, nil
}

// next waits until there is something to read, or the end, and calls got with it.
func (p *pipe) next(got taker) error {
	p.got, p.err = got, nil
	if err := p.conn.Read(p.ready); err != nil {
		return err
	}
	return p.err
}

func (p *pipe) try(fd uintptr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, p.err = readOnce(fd, p.got)
	if p.err == syscall.EAGAIN {
		p.err = nil
		return false
	}
	return true
}

// rest calls got with everything that is there now, and with the end if that follows.
func (p *pipe) rest(got taker) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cerr := p.conn.Control(func(fd uintptr) {
		for total := 0; ; {
			var n int
			if n, err = readOnce(fd, got); n == 0 {
				break
			}
			// By now everything was read that was there in the beginning, and somebody
			// writes on, perhaps for ever.
			if total += n; total >= pipeSize && total >= capacity(fd) {
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

// readOnce reads once, and calls got unless there is an error. At the end n is 0.
func readOnce(fd uintptr, got taker) (n int, err error) {
	buf := buffers.Get().(*buffer)
	for {
		n, err = syscall.Read(int(fd), buf[:])
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil || !got(buf, n) {
		buffers.Put(buf)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// noReader reports whether err is that of writing to a pipe that nobody reads any more.
func noReader(err error) bool { return errors.Is(err, syscall.EPIPE) }
