//go:build unix

package simulate

import (
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// capacity is how many bytes a pipe holds, as in the kernel.
const capacity = 64 << 10

// A pipe carries bytes between a process and the program. Its bytes tell their offset (see [Byte]), so that only
// their number is kept.
type pipe struct {
	m  *Machine
	id int
	fd int // the lowest descriptor that it is of the command

	// Guarded by m.mu.
	first, last      int64 // offsets of what is in the pipe; last is how many bytes were written in all
	data             []byte
	readers, writers int
	changed          chan struct{} // closed at the next change
}

// Byte returns the byte at an offset of everything that processes write to their stdout.
func Byte(offset int64) byte { return ByteOf(1, offset) }

// ByteOf is like Byte, for the descriptor fd. The bytes of descriptor 2 are in upper case.
func ByteOf(fd int, offset int64) byte {
	first := byte('a')
	if fd == 2 {
		first = 'A'
	}
	if offset%61 == 60 {
		return '\n'
	}
	return first + byte(offset%23)
}

func (m *Machine) newPipe() *pipe {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastPipe++
	p := &pipe{m: m, id: m.lastPipe, readers: 1, writers: 1, changed: make(chan struct{})}
	return p
}

// change wakes everybody who waits for the pipe. The caller holds m.mu.
func (p *pipe) change() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// A WriteEnd is the writing end of a pipe.
type WriteEnd struct {
	p      *pipe
	closed atomic.Bool
}

// Write writes as a program does that blocks while the pipe is full.
func (w *WriteEnd) Write(b []byte) (n int, err error) {
	for n < len(b) {
		w.p.m.mu.Lock()
		if w.closed.Load() {
			w.p.m.mu.Unlock()
			return n, os.ErrClosed
		}
		if w.p.readers == 0 {
			w.p.m.mu.Unlock()
			return n, syscall.EPIPE
		}
		k := min(len(b)-n, capacity-len(w.p.data))
		w.p.data = append(w.p.data, b[n:n+k]...)
		w.p.last += int64(k)
		n += k
		changed := w.p.changed
		if k > 0 {
			w.p.change()
			w.p.m.feed()
		}
		w.p.m.mu.Unlock()
		if n < len(b) && k == 0 {
			<-changed
		}
	}
	return n, nil
}

// Close closes the end. A Write that waits returns.
func (w *WriteEnd) Close() error {
	if w.closed.Swap(true) {
		return os.ErrClosed
	}
	w.p.m.mu.Lock()
	defer w.p.m.mu.Unlock()
	w.p.writers--
	w.p.change()
	w.p.m.feed()
	return nil
}

// feed notes that the input of the processes has changed. The caller holds m.mu.
func (m *Machine) feed() {
	m.inputs = append(m.inputs, time.Now())
	m.noteWait()
}

// A ReadEnd is the reading end of a pipe. It is read through its [syscall.RawConn] and [Machine.Read], as the
// program reads real pipes.
type ReadEnd struct {
	p      *pipe
	closed atomic.Bool
}

// Read waits until there is something to read.
func (r *ReadEnd) Read(b []byte) (n int, err error) {
	var failed error
	err = r.rawRead(func() bool {
		n, failed = r.p.read(b)
		return failed != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case n == 0 && failed == nil && len(b) > 0:
		return 0, io.EOF
	}
	return n, failed
}

// Close closes the end. A read that waits returns os.ErrClosed.
func (r *ReadEnd) Close() error {
	if r.closed.Swap(true) {
		return os.ErrClosed
	}
	r.p.m.mu.Lock()
	defer r.p.m.mu.Unlock()
	r.p.readers--
	r.p.change()
	return nil
}

// SetReadDeadline accepts that there is none.
func (r *ReadEnd) SetReadDeadline(time.Time) error { return nil }

// SyscallConn returns the connection through which the end is read.
func (r *ReadEnd) SyscallConn() (syscall.RawConn, error) { return rawConn{r}, nil }

// firstDescriptor lies where no real descriptor can, so that a mistake reads nothing of the test's.
const firstDescriptor = 1 << 30

type rawConn struct{ *ReadEnd }

func (c rawConn) Control(f func(fd uintptr)) error {
	if c.closed.Load() {
		return os.ErrClosed
	}
	f(uintptr(firstDescriptor + c.p.id))
	return nil
}

func (c rawConn) Read(f func(fd uintptr) bool) error {
	return c.rawRead(func() bool { return f(uintptr(firstDescriptor + c.p.id)) })
}

func (c rawConn) Write(func(fd uintptr) bool) error { return syscall.EBADF }

func (r *ReadEnd) rawRead(try func() bool) error {
	for {
		r.p.m.mu.Lock()
		changed := r.p.changed
		r.p.m.mu.Unlock()
		if r.closed.Load() {
			return os.ErrClosed
		}
		if try() {
			return nil
		}
		<-changed
		r.p.m.late(strconv.Itoa(r.p.fd))
	}
}

// read reads as read(2) does from a descriptor with O_NONBLOCK.
func (p *pipe) read(b []byte) (n int, err error) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if len(p.data) == 0 {
		if p.writers > 0 {
			return 0, syscall.EAGAIN
		}
		return 0, nil
	}
	n = copy(b, p.data)
	p.data = p.data[n:]
	p.first += int64(n)
	if p.fd != 0 {
		p.m.reads = append(p.m.reads, Output{At: time.Now(), FD: p.fd, N: n})
	}
	p.change()
	return n, nil
}
