//go:build !unix

package ready

import (
	"io"
	"syscall"
	"time"
)

// On these systems a process cannot make a file non-blocking for another.

// Again returns false: on these systems a read or write of a file waits.
func Again(error) bool { return false }

func attempt(w io.Writer, p []byte) (n int, part bool, err error) {
	n, err = w.Write(p)
	return n, false, err
}

type alarm struct{}

func (*alarm) open()  {}
func (*alarm) ring()  {}
func (*alarm) close() {}

func poll(syscall.RawConn, bool, *Stop, time.Duration) bool { return false }

func pause(*Stop, time.Duration) {}
