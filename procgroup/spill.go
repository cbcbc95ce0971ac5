package procgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/scratch"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// errFull reports that the bound of the file or of its directory was reached.
var errFull = fmt.Errorf("procgroup: no more output may go to the file: %w", io.ErrShortWrite)

// A SpillDir is a private directory for the files to which the output of commands is
// written; see [Capture]. Only the user of this program can read it. Its methods are safe for concurrent use.
type SpillDir struct {
	dir *scratch.Dir
	max int64

	mu     sync.Mutex
	used   int64
	files  map[string]*spillFile
	closed bool
}

// NewSpillDir makes a directory in parent, which must exist. If parent is "", it is the directory for temporary
// files. All files of the directory together have at most max bytes; 0 means no bound. Close removes the directory.
// The directory of a program that has ended without Close, as after SIGKILL, is removed by the next NewSpillDir of
// the same user in the same parent; on systems other than Linux, macOS, the BSDs and Windows it stays.
//
// If max is negative, the error is a [*timeout.ConfigError].
func NewSpillDir(parent string, max int64) (*SpillDir, error) {
	if err := refuseNegative("NewSpillDir", max); err != nil {
		return nil, err
	}
	dir, err := scratch.Make(parent)
	if err != nil {
		return nil, fmt.Errorf("procgroup: making a directory for output: %w", err)
	}
	return &SpillDir{dir: dir, max: max, files: make(map[string]*spillFile)}, nil
}

// Remove removes a file, such as the [Spill.Path] of a result that is not needed any more, and makes
// room for others. The rest of the output of a command that still writes to it is lost. Remove does
// nothing if the directory has no such file.
func (d *SpillDir) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	if f == nil {
		return nil
	}
	d.mu.Unlock()
	err := os.Remove(path) // without the lock, as Close: the file system may not answer
	d.mu.Lock()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if d.files[path] == f { // no other call has removed it
		delete(d.files, path)
		d.used -= f.bytes
		f.gone = true
	}
	return nil
}

// Close removes the directory with all of its files. Commands that still write to files in it go on;
// the rest of their output is in no file. On Windows the directory cannot be removed before these
// commands have ended. Close may be called more than once.
func (d *SpillDir) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	return d.dir.Remove()
}

// A Spill is a file with the output of a command; see [Capture].
type Spill struct {
	// Path is the path of the file. It is "" if there is none: without a SpillDir or output, or if
	// the file could not be made.
	Path string
	// Bytes is the size of the file.
	Bytes int64
	// Err is why the file does not have all of the output, or nil. It matches [io.ErrShortWrite] if a
	// bound was reached, and otherwise is an error of the file system.
	Err error
}

// A spillFile is the file of one command. Its dir guards the fields after max.
type spillFile struct {
	dir *SpillDir
	max int64

	file  *os.File // nil before the first byte
	bytes int64    // reserved in dir: written, or being written
	gone  bool     // no more may be written
	over  bool     // no file is made any more
}

// Write implements io.Writer. Only one call is in progress at a time.
func (f *spillFile) Write(p []byte) (n int, err error) {
	n, err = f.reserve(len(p))
	if n == 0 {
		return 0, err
	}
	written, werr := f.file.Write(p[:n]) // without the lock: the disk may be slow
	if werr != nil {
		f.dir.mu.Lock()
		f.bytes -= int64(n - written)
		if !f.gone {
			f.dir.used -= int64(n - written)
		}
		f.dir.mu.Unlock()
		return written, werr
	}
	return n, err
}

// reserve returns how many of n bytes may be written, and why not all of them. It makes the file.
func (f *spillFile) reserve(n int) (int, error) {
	d := f.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || f.gone {
		return 0, os.ErrClosed
	}
	if f.file == nil {
		d.mu.Unlock()
		file, err := os.CreateTemp(d.dir.Path(), "") // with mode 0600; without the lock: the file system may not answer
		d.mu.Lock()
		switch {
		case err != nil:
			return 0, err
		case d.closed || f.over:
			_, _ = file.Close(), os.Remove(file.Name())
			return 0, os.ErrClosed
		}
		f.file = file
		d.files[file.Name()] = f
	}
	var full error
	for _, b := range []struct{ max, used int64 }{{f.max, f.bytes}, {d.max, d.used}} {
		if b.max > 0 && int64(n) > b.max-b.used {
			n, full = int(b.max-b.used), errFull
		}
	}
	f.bytes += int64(n)
	d.used += int64(n)
	return n, full
}

// end closes the file, until the given time: the file system may not answer. err is why not everything was written
// to it.
func (f *spillFile) end(err error, until time.Time) Spill {
	f.dir.mu.Lock()
	f.over = true
	file, bytes := f.file, f.bytes
	f.dir.mu.Unlock()
	if file == nil {
		return Spill{Err: err}
	}
	closed := new(error) // Close may report a write that has failed, and may outlast Within
	cerr := patient.ErrNoAnswer
	if patient.Within(time.Until(until), file, func() { *closed = file.Close() }) {
		cerr = *closed
	}
	if err == nil {
		err = cerr
	}
	return Spill{Path: file.Name(), Bytes: bytes, Err: err}
}

// refuseNegative returns an error if bytes is negative, and nil otherwise.
func refuseNegative(key string, bytes int64) error {
	if bytes >= 0 {
		return nil
	}
	return &timeout.ConfigError{Key: key, Value: strconv.FormatInt(bytes, 10), Accepted: "0 or more bytes"}
}
