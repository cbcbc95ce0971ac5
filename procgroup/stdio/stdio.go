package stdio

import (
	"os"
	"sync"
	"syscall"

	"github.com/tooldeadline/tooldeadline/internal/ready"
)

// A File reads and writes a file that other processes share. Its methods may be called concurrently.
type File struct {
	file    *os.File
	stop    ready.Stop
	writing sync.Mutex // held for a whole Write, as package os does
}

// New returns a File that reads and writes f. On systems other than Unix it only calls the methods of f.
func New(f *os.File) *File { return &File{file: f} }

// Read reads as f.Read does. If f is non-blocking and there is nothing to read, Read waits.
func (f *File) Read(p []byte) (n int, err error) {
	n, err = ready.Read(f.file, p, &f.stop)
	return n, f.closed(err)
}

// Write writes as f.Write does. If f is non-blocking and takes no more, Write waits and goes on with the rest.
func (f *File) Write(p []byte) (n int, err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	n, err = ready.Write(f.file, p, &f.stop, nil)
	return n, f.closed(err)
}

// SyscallConn returns that of f.
func (f *File) SyscallConn() (syscall.RawConn, error) { return f.file.SyscallConn() }

// Close closes f. A Read or a Write that waits because f is non-blocking ends with [os.ErrClosed]. One in a system call
// that blocks ends when that does, as with an [os.File].
func (f *File) Close() error {
	f.stop.Now()
	return f.file.Close()
}

// closed returns the error of a closed file in place of that of a wait which Close has ended.
func (f *File) closed(err error) error {
	if err != nil && f.stop.Has() && ready.Again(err) {
		return &os.PathError{Op: "wait", Path: f.file.Name(), Err: os.ErrClosed}
	}
	return err
}
