package capture

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A pipe is the reading end of a pipe. It has two methods to read: next, for one goroutine, waits for output, and rest
// does not wait.
//
// Windows performs only one operation at a time on such a pipe: a query for available output would wait until a pending
// read has returned. Therefore the first rest stops next for good.
type pipe struct {
	r    *os.File
	conn syscall.RawConn

	mu      sync.Mutex // guards the fields below; held while a taker is called, so that output keeps its order
	reading bool       // next is reading, or about to read
	stopped bool       // rest was called
}

// restEvery is how often Drain must call rest to find the end of the stream, because the first rest stops next.
const restEvery = 5 * time.Millisecond

// stopTime is the longest time that stop waits for a read to be cancelled.
const stopTime = 500 * time.Millisecond

// newPipe makes a pipe. w is its writing end.
func newPipe() (_ *pipe, w *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	conn, err := r.SyscallConn()
	if err != nil {
		r.Close()
		w.Close()
		return nil, nil, err
	}
	return &pipe{r: r, conn: conn}, w, nil
}

// next waits for output or the end of the stream, and calls got with it. On an error it does not call got; after a call
// of rest the error is [os.ErrClosed].
func (p *pipe) next(got taker) error {
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return os.ErrClosed
	}
	p.reading = true
	p.mu.Unlock()
	buf := buffers.Get().(*buffer)
	n, err := p.r.Read(buf[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = false
	if err == io.EOF {
		err = nil
	}
	if err != nil || !got(buf, n) {
		buffers.Put(buf)
	}
	if err != nil && p.stopped {
		return os.ErrClosed // stop has cancelled the read
	}
	return err
}

// stop makes next return, now and in future. The caller holds p.mu, which stop releases while it waits. It returns an
// error if the read of next has not ended after stopTime.
func (p *pipe) stop() error {
	p.stopped = true
	for begun := time.Now(); p.reading; {
		if time.Since(begun) > stopTime {
			return errors.New("a read of the pipe cannot be cancelled")
		}
		// CancelIoEx does not affect a read that has not begun yet, so repeat it.
		_ = p.conn.Control(func(h uintptr) { _ = windows.CancelIoEx(windows.Handle(h), nil) })
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
		p.mu.Lock()
	}
	return nil
}

// rest calls got with all output that is available when rest is called, and with the end of the stream if that follows.
// It stops next.
func (p *pipe) rest(got taker) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stop(); err != nil {
		return err
	}
	// A pipe holds less than pipeSize. What follows was written meanwhile, perhaps by a process that never stops.
	for total := 0; total < pipeSize; {
		there, err := p.peek()
		if errors.Is(err, windows.ERROR_BROKEN_PIPE) {
			got(nil, 0)
			return nil
		}
		if err != nil || there == 0 {
			return err
		}
		buf := buffers.Get().(*buffer)
		n, err := p.r.Read(buf[:])
		if err != nil || !got(buf, n) {
			buffers.Put(buf)
		}
		if err != nil {
			return err
		}
		total += n
	}
	return nil
}

var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// peek returns the number of bytes that can be read without waiting. At the end of the stream the error matches
// ERROR_BROKEN_PIPE.
func (p *pipe) peek() (there uint32, err error) {
	cerr := p.conn.Control(func(h uintptr) {
		ok, _, errno := peekNamedPipe.Call(h, 0, 0, 0, uintptr(unsafe.Pointer(&there)), 0)
		if ok == 0 {
			err = os.NewSyscallError("PeekNamedPipe", errno)
		}
	})
	return there, errors.Join(cerr, err)
}

// noReader reports whether err is the error of a write to a pipe that has no reader.
func noReader(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
