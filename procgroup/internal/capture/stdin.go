package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// An input feeds the command from a reader of the caller's, which may block for ever.
type input struct {
	r, w    *os.File
	from    io.Reader
	fail    func(error) // see Guard
	reading atomic.Bool // in from, and not in the pipe
	done    chan struct{}
	err     error // once done is closed
}

func newInput(from io.Reader, fail func(error)) (*input, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &input{r: r, w: w, from: from, fail: fail, done: make(chan struct{})}, nil
}

// start begins to feed, once the command has the other end.
func (in *input) start() {
	in.r.Close()
	in.reading.Store(true)
	go in.run()
}

func (in *input) run() {
	defer close(in.done)
	defer in.w.Close() // after a failure is known, which the command must not get ahead of
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
					return nil // that a command does not read all of its input is no error
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

// gone reports whether err is that of a pipe without a reader, or closed by finish.
func gone(err error) bool {
	return noReader(err) || errors.Is(err, os.ErrClosed)
}

// finish ends the feeding. A reader that blocks is left behind: its goroutine ends when
// it returns.
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
