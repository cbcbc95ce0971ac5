package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// An input feeds the command from a reader of the caller. The reader may block forever.
type input struct {
	r, w    *os.File
	from    io.Reader
	fail    func(error) // see Guard
	reading atomic.Bool // in from.Read, not in a write to the pipe
	done    chan struct{}
	err     error // valid once done is closed
}

func newInput(from io.Reader, fail func(error)) (*input, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{r: r, w: w, from: from, fail: fail, done: make(chan struct{})}, nil
}

// start begins to feed the command, which has been started with the reading end.
func (in *input) start() {
	in.r.Close()
	in.reading.Store(true)
	go in.run()
}

func (in *input) run() {
	defer close(in.done)
	defer in.w.Close() // after fail: the command must not end because of the end of its input before it is aborted
	Guard(func() { in.err = in.copy() }, func(err error) {
		in.err = err
		in.fail(err)
	})
}

func (in *input) copy() error {
	buf := make([]byte, 32<<10)
	for {
		in.reading.Store(true)
		n, err := in.from.Read(buf)
		in.reading.Store(false)
		if n > 0 {
			if _, werr := in.w.Write(buf[:n]); werr != nil {
				if gone(werr) {
					return nil // a command need not read all of its input
				}
				return fmt.Errorf("procgroup: writing to the command's stdin: %w", werr)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("procgroup: reading stdin: %w", err)
		}
	}
}

// gone reports whether err is the error of a pipe that has no reader, or that finish has closed.
func gone(err error) bool {
	return noReader(err) || errors.Is(err, os.ErrClosed)
}

// finish stops feeding the command. It does not wait for a blocked reader, whose goroutine ends when
// Read returns.
func (in *input) finish(until time.Time) error {
	in.w.Close()
	if !in.reading.Load() {
		wait(in.done, until)
	}
	select {
	case <-in.done:
		return in.err
	default:
		return nil
	}
}

func (in *input) close() {
	in.r.Close()
	in.w.Close()
}
