package stdio

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/ready"
)

// A File reads and writes a file that other processes share. Its methods are safe for concurrent use.
type File struct {
	file    *os.File
	stop    ready.Stop    // ends the waits of package ready
	closing chan struct{} // closed by Close
	writing chan struct{} // full during a Write: concurrent Writes run one after the other, as with an os.File

	mu     sync.Mutex
	calls  int  // calls of Read and Write in progress
	closed bool // closing is closed
}

// New returns a File that reads and writes f. On systems other than Unix, Read and Write never wait for f to become
// ready: they return what the methods of f return.
func New(f *os.File) *File {
	return &File{file: f, closing: make(chan struct{}), writing: make(chan struct{}, 1)}
}

// Read reads as [os.File.Read] does. If the file is non-blocking and has nothing to read, Read waits. After Close the
// error wraps [os.ErrClosed].
func (f *File) Read(p []byte) (n int, err error) {
	if !f.begin() {
		return 0, f.errClosed("read")
	}
	defer f.end()
	n, err = ready.Read(f.file, p, &f.stop)
	return n, f.ended("read", err)
}

// Write writes as [os.File.Write] does. If the file is non-blocking and accepts no more, Write waits and then writes
// the rest. After Close the error wraps [os.ErrClosed].
func (f *File) Write(p []byte) (n int, err error) {
	select { // Close wins: begin looks for it
	case f.writing <- struct{}{}:
		defer func() { <-f.writing }()
	case <-f.closing:
		return 0, f.errClosed("write")
	}
	if !f.begin() {
		return 0, f.errClosed("write")
	}
	defer f.end()
	n, err = ready.Write(f.file, p, &f.stop, nil)
	return n, f.ended("write", err)
}

// SyscallConn returns the raw connection of the file; see [os.File.SyscallConn].
func (f *File) SyscallConn() (syscall.RawConn, error) { return f.file.SyscallConn() }

// Close closes f and the file that was passed to [New]. A Read or Write that waits because the file is non-blocking
// returns an error that wraps [os.ErrClosed]. Close does not wait for a Read or Write in a system call that blocks: it
// returns nil, and the file is closed when that call ends. A second Close returns an error that wraps [os.ErrClosed].
func (f *File) Close() error {
	f.mu.Lock()
	again, busy := f.closed, f.calls > 0
	f.closed = true
	f.mu.Unlock()
	if again {
		return f.errClosed("close")
	}
	close(f.closing)
	f.stop.Now()
	if !busy {
		return f.file.Close()
	}
	// If package os has found the file non-blocking once, its Close waits for calls in progress, so it runs on another
	// goroutine. The deadline ends calls that wait in the runtime's poller; other calls do not heed it.
	_ = f.file.SetDeadline(time.Unix(1, 0))
	go f.file.Close()
	return nil
}

// begin counts a call of Read or Write. It returns false if f is closed; otherwise the caller must call end.
func (f *File) begin() (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.calls++
	return true
}

func (f *File) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls--
}

// ended returns an error that wraps os.ErrClosed if err shows that Close has ended a wait, and otherwise err.
func (f *File) ended(op string, err error) error {
	if err != nil && f.stop.Stopped() && (ready.Again(err) || errors.Is(err, os.ErrDeadlineExceeded)) {
		return f.errClosed(op)
	}
	return err
}

func (f *File) errClosed(op string) error {
	return &os.PathError{Op: op, Path: f.file.Name(), Err: os.ErrClosed}
}
