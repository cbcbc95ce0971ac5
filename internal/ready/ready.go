// Package ready continues reads and writes of files that another process makes non-blocking.
//
// The flag O_NONBLOCK belongs to the open file description, which is shared by all processes that have inherited it.
// Package os reads the flag once, when it makes an [os.File]. If another process sets the flag later, as Node does for
// its standard streams, a read or a write that would have to wait fails with EAGAIN instead. This package then waits
// and tries again. It does not clear the flag, because the other process relies on it.
package ready

import (
	"io"
	"syscall"
	"time"
)

// Write calls w.Write. If that fails with EAGAIN, Write waits until w accepts more, and goes on with the rest of p. For
// this, w must be a [syscall.Conn], as [os.File] and types that embed it are. For any other writer Write cannot know
// what to wait for, nor whether n bytes of p are really written. wrote, unless it is nil, is called after each attempt
// with the number of bytes that it has written.
//
// The error matches EAGAIN if the rest was not written because w is not a syscall.Conn or stop has ended the wait.
func Write(w io.Writer, p []byte, stop *Stop, wrote func(n int)) (n int, err error) {
	for wait := (waiting{}); ; {
		m, part, err := attempt(w, p[n:])
		if took := min(max(m, 0), len(p)-n); took != m { // for example, a writer that replaces text by longer text
			m = took
			if err == nil {
				err = io.ErrShortWrite
			}
		}
		n += m
		if wrote != nil {
			wrote(m)
		}
		if part && n < len(p) {
			continue
		}
		if !Again(err) {
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
		if file, ok := w.(syscall.Conn); !ok || !wait.until(file, true, m > 0, stop) {
			return n, err
		}
	}
}

// Read calls r.Read. If that fails with EAGAIN, Read waits and tries again: until there is something to read if r is a
// [syscall.Conn], and otherwise after a pause.
//
// The error matches EAGAIN if stop has ended the wait.
func Read(r io.Reader, p []byte, stop *Stop) (n int, err error) {
	for wait := (waiting{}); ; {
		n, err = r.Read(p)
		if !Again(err) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		file, _ := r.(syscall.Conn)
		if !wait.until(file, false, false, stop) {
			return 0, err
		}
	}
}

// A waiting is the state of the waits of one Read or Write. fruitless counts the waits in a row after which the file
// was reported as ready, or which were pauses, without any bytes moved.
type waiting struct{ fruitless int }

const (
	// slice is the longest time before the file is tried again. poll(2) does not notice if the file is closed.
	slice = time.Second
	// patience is the number of fruitless waits after which until pauses instead of polling.
	patience = 8
	// maxPause is the longest pause if the file is not polled.
	maxPause = 100 * time.Millisecond
)

// until waits until file should be tried again, and returns true, or returns false if stop has ended the wait. file may
// be nil. output says whether to wait for a write or for a read. moved says that the last attempt has moved bytes.
func (w *waiting) until(file syscall.Conn, output, moved bool, stop *Stop) bool {
	if !stop.begin() {
		return false
	}
	defer stop.end()
	if moved {
		w.fruitless = 0
	}
	if file != nil && w.fruitless < patience {
		if raw, err := file.SyscallConn(); err == nil {
			if poll(raw, output, stop, slice) {
				w.fruitless++
			}
			return !stop.Stopped()
		}
	}
	pause(stop, min(time.Millisecond<<min(w.fruitless, 7), maxPause))
	w.fruitless++
	return !stop.Stopped()
}
