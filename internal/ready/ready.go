// Package ready continues reads and writes of files that become non-blocking.
//
// O_NONBLOCK belongs to the open file description, which all processes share that have inherited it. Package os looks
// at it once, when it makes an [os.File]. If another process sets it later, as Node does with its standard streams, a
// read or a write that would have to wait fails with EAGAIN instead. This package waits then. It leaves the flag as it
// is, because the flag is not ours.
package ready

import (
	"io"
	"syscall"
	"time"
)

// Write is w.Write, but if that would have to wait, Write waits and goes on with the rest. w is a file if it has the
// method of [syscall.Conn], as [os.File] and what embeds it have. Of any other writer nothing is known: neither what to
// wait for, nor whether n tells how much of p is still to be written. wrote, unless it is nil, is called with what each
// attempt has written.
//
// The error matches EAGAIN if the rest could not be written because w is not a file or stop has come.
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

// Read is r.Read, but if that would have to wait, Read waits. If r is not a file it tries again after a while: nothing is
// lost by that.
//
// The error matches EAGAIN if stop has come.
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

// A waiting is a sequence of waits of one read or write.
type waiting struct{ fruitless int }

const (
	// slice is how long to wait before the file is tried again anyway. The file may have been closed, which nothing
	// reports.
	slice = time.Second
	// patience is how many waits may say that the file is ready while it is not, before they are not believed.
	patience = 8
	// maxPause is the longest pause where nothing tells whether the file is ready.
	maxPause = 100 * time.Millisecond
)

// until waits until the file should be tried again. It reports false if stop has come. file may be nil. moved means
// that the last attempt has moved bytes.
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
