package procgroup

import (
	"cmp"
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

// errFull is the error of a write that exceeds SpillMax or the bound of the directory.
var errFull = fmt.Errorf("procgroup: no more output may go to the file: %w", io.ErrShortWrite)

// A SpillDir is a private directory for the files to which the output of commands is written; see [Capture]. Only the
// user of this program can read it. Its methods are safe for concurrent use.
type SpillDir struct {
	dir *scratch.Dir
	max int64 // bound of used; 0 means no bound

	mu     sync.Mutex            // guards the fields below, and those of the files
	used   int64                 // bytes in all files, including writes in progress
	files  map[string]*spillFile // by path
	closed bool
}

// fileTime is how long NewSpillDir, the methods of a SpillDir, Listen and Attach wait for a file system.
const fileTime = 5 * time.Second

// NewSpillDir creates a directory in parent, which must exist. If parent is "", NewSpillDir uses the directory for
// temporary files. All files of the directory together have at most max bytes; 0 means no bound. Close removes the
// directory. If the file system does not answer within 5 s, NewSpillDir returns an error, and so do Close and Remove,
// which are then completed in the background. If a program ends without Close, as after SIGKILL, the next NewSpillDir
// of the same user on the same machine in the same parent removes its directory; on systems other than Linux, macOS,
// the BSDs and Windows the directory stays.
//
// If max is negative, the error is a [*timeout.ConfigError].
func NewSpillDir(parent string, max int64) (*SpillDir, error) {
	if err := refuseNegative("NewSpillDir", max); err != nil {
		return nil, err
	}
	parent = cmp.Or(parent, os.TempDir())
	dir, err := patient.Soon(fileTime, parent,
		func() (*scratch.Dir, error) { return scratch.Make(parent) }, func(late *scratch.Dir) { _ = late.Remove() })
	if err != nil {
		return nil, fmt.Errorf("procgroup: making a directory for output: %w", err)
	}
	return &SpillDir{dir: dir, max: max, files: make(map[string]*spillFile)}, nil
}

// Remove removes the file with the [Spill.Path] path, whose bytes no longer count for the bound of the directory. If a
// command still writes to the file, the rest of its output is in no file. If the SpillDir has no such file, Remove does
// nothing and returns nil.
func (d *SpillDir) Remove(path string) error {
	d.mu.Lock()
	f := d.files[path]
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	return patient.Do(fileTime, path, func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.files[path] == f { // no concurrent call has removed it
			delete(d.files, path)
			d.used -= f.bytes
			f.gone = true
		}
		return nil
	})
}

// Close removes the directory with all of its files. Commands that still write to these files go on; the rest of their
// output is in no file. On Windows the directory cannot be removed before these commands have ended. Close may be
// called more than once.
func (d *SpillDir) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	return patient.Do(fileTime, d.dir.Path(), d.dir.Remove)
}

// A Spill describes a file with the output of a command; see [Capture].
type Spill struct {
	// Path is the path of the file. It is "" if there is no file: without a SpillDir or output, or if the file could
	// not be created.
	Path string
	// Bytes is the size of the file.
	Bytes int64
	// Err is nil if the file contains all of the output. It matches [io.ErrShortWrite] if a bound was reached, and
	// [os.ErrClosed] if the file or its directory was removed too early. Otherwise it is an error of the file system,
	// or says that the file system has not accepted all output in time.
	Err error
}

// A spillFile is the file of one command. dir.mu guards the fields after max.
type spillFile struct {
	dir *SpillDir
	max int64 // bound of bytes; 0 means no bound

	file  *os.File // nil before the first byte
	bytes int64    // written, or reserved for a write in progress
	gone  bool     // Remove has removed the file
	over  bool     // end was called, so that no file is created any more
}

// Write implements io.Writer. It writes fewer bytes than len(p) only with an error. The caller makes one call at a
// time.
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

// reserve counts n bytes, or as many as the bounds allow, as written, and returns their number; the error says why it
// is less than n. If there is no file yet, reserve creates it.
func (f *spillFile) reserve(n int) (int, error) {
	d := f.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || f.gone {
		return 0, os.ErrClosed
	}
	if f.file == nil {
		d.mu.Unlock()
		file, err := os.CreateTemp(d.dir.Path(), "") // with mode 0600; d.mu is not held: the file system may not answer
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

// end closes the file, and describes it. It waits for the file system until the given time. err is the error of Write,
// or nil.
func (f *spillFile) end(err error, until time.Time) Spill {
	f.dir.mu.Lock()
	f.over = true
	file, bytes := f.file, f.bytes
	f.dir.mu.Unlock()
	if file == nil {
		return Spill{Err: err}
	}
	closed := patient.Do(time.Until(until), file, file.Close) // its error may be that of a write
	return Spill{Path: file.Name(), Bytes: bytes, Err: cmp.Or(err, closed)}
}

// refuseNegative returns a [*timeout.ConfigError] if bytes is negative, and otherwise nil.
func refuseNegative(key string, bytes int64) error {
	if bytes >= 0 {
		return nil
	}
	return &timeout.ConfigError{Key: key, Value: strconv.FormatInt(bytes, 10), Accepted: "0 or more bytes"}
}
