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

// capacity is the number of bytes that a pipe holds, as on Linux.
const capacity = 64 << 10

// A pipe carries bytes between a process and the program.
type pipe struct {
	m  *Machine
	id int
	fd int // the lowest descriptor of the leader that is an end of the pipe

	// Guarded by m.mu.
	first, last      int64  // numbers of bytes that were read and written so far
	data             []byte // the bytes between first and last
	readers, writers int    // numbers of open ends
	changed          broadcast
}

// ByteOf returns the byte that processes write at an offset of the descriptor fd, on which alone it depends. The bytes of
// descriptor 2 are in upper case.
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
	return &pipe{m: m, id: m.lastPipe, readers: 1, writers: 1}
}

// A broadcast wakes goroutines. Its owner guards it. The zero broadcast is ready to use.
type broadcast struct{ c chan struct{} }

// next returns a channel that the next call of send closes.
func (b *broadcast) next() <-chan struct{} {
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) send() {
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

// A WriteEnd is the writing end of a pipe.
type WriteEnd struct {
	p      *pipe
	closed atomic.Bool
}

// Write writes all of b, and waits while the pipe is full. It returns EPIPE if there is no reader, and os.ErrClosed
// after Close.
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
		changed := w.p.changed.next()
		if k > 0 {
			w.p.changed.send()
			w.p.m.feed()
		}
		w.p.m.mu.Unlock()
		if n < len(b) && k == 0 {
			<-changed
		}
	}
	return n, nil
}

// Close closes the end. A Write that waits returns os.ErrClosed.
func (w *WriteEnd) Close() error {
	if w.closed.Swap(true) {
		return os.ErrClosed
	}
	w.p.m.mu.Lock()
	defer w.p.m.mu.Unlock()
	w.p.writers--
	w.p.changed.send()
	w.p.m.feed()
	return nil
}

// feed records the current time as one at which the program has written or closed the command's input; see
// History.Fed. The caller holds m.mu.
func (m *Machine) feed() {
	m.Fed = append(m.Fed, time.Now())
	m.noteWait()
}

// A ReadEnd is the reading end of a pipe. The program reads it through its [syscall.RawConn] and [Machine.Read], as
// it reads real pipes.
type ReadEnd struct {
	p      *pipe
	closed atomic.Bool
}

// Read waits until the pipe has bytes, and reads up to len(b) of them. It returns io.EOF if the pipe is empty and has
// no writer.
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

// Close closes the end. A Read that waits returns os.ErrClosed.
func (r *ReadEnd) Close() error {
	if r.closed.Swap(true) {
		return os.ErrClosed
	}
	r.p.m.mu.Lock()
	defer r.p.m.mu.Unlock()
	r.p.readers--
	r.p.changed.send()
	return nil
}

// SetReadDeadline does nothing: the program only ends reads by closing the end.
func (r *ReadEnd) SetReadDeadline(time.Time) error { return nil }

// SyscallConn returns a connection whose descriptor is one for [Machine.Read].
func (r *ReadEnd) SyscallConn() (syscall.RawConn, error) { return rawConn{r}, nil }

// firstDescriptor is larger than any real descriptor, so that a descriptor of the machine never refers to a real file.
const firstDescriptor = 1 << 30

// A rawConn implements syscall.RawConn for a ReadEnd.
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

// rawRead calls try after each change of the pipe until try returns true. It returns os.ErrClosed after Close.
func (r *ReadEnd) rawRead(try func() bool) error {
	for {
		r.p.m.mu.Lock()
		changed := r.p.changed.next()
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

// read behaves like read(2) on a descriptor with O_NONBLOCK: it returns EAGAIN while the pipe is empty and has a
// writer.
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
		p.m.ReadOut = append(p.m.ReadOut, Output{At: time.Now(), FD: p.fd, N: n})
	}
	p.changed.send()
	return n, nil
}
