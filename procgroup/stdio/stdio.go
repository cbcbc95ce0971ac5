package stdio

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/ready"
)

// A File reads and writes a file that other processes share. Its methods may be called concurrently.
type File struct {
	file    *os.File
	stop    ready.Stop
	closing chan struct{}
	writing chan struct{} // holds a value during a Write: concurrent Writes take turns, as those of an os.File do

	mu     sync.Mutex
	calls  int  // calls of Read and Write in progress
	closed bool // closing is closed
}

// New returns a File that reads and writes f. On systems other than Unix it only calls the methods of f.
func New(f *os.File) *File {
	return &File{file: f, closing: make(chan struct{}), writing: make(chan struct{}, 1)}
}

// Read reads as f.Read does. If f is non-blocking and there is nothing to read, Read waits.
func (f *File) Read(p []byte) (n int, err error) {
	if !f.begin() {
		return 0, f.errClosed("read")
	}
	defer f.end()
	n, err = ready.Read(f.file, p, &f.stop)
	return n, f.ended("read", err)
}

// Write writes as f.Write does. If f is non-blocking and takes no more, Write waits and goes on with the rest.
func (f *File) Write(p []byte) (n int, err error) {
	select {
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

// SyscallConn returns the raw connection of f.
func (f *File) SyscallConn() (syscall.RawConn, error) { return f.file.SyscallConn() }

// Close closes f. A Read or a Write that waits because f is non-blocking ends with [os.ErrClosed]. A Read or a
// Write in a system call that blocks ends with that call; Close does not wait for it, and f is closed then.
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
	// Package os waits for a system call in progress if it has found f non-blocking once. What waits in the
	// runtime's poller ends by the deadline; a file without a poller has none.
	_ = f.file.SetDeadline(time.Unix(1, 0))
	go f.file.Close()
	return nil
}

// begin counts a call. It reports false if f is closed.
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

// ended returns the error of a closed file in place of err if Close has ended the wait, and err otherwise.
func (f *File) ended(op string, err error) error {
	if err != nil && f.stop.Stopped() && (ready.Again(err) || errors.Is(err, os.ErrDeadlineExceeded)) {
		return f.errClosed(op)
	}
	return err
}

func (f *File) errClosed(op string) error {
	return &os.PathError{Op: op, Path: f.file.Name(), Err: os.ErrClosed}
}
