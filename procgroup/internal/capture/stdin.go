package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/ready"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

// An input feeds the command from a reader of the caller. The reader may block forever.
type input struct {
	r          io.ReadCloser  // the command's end; nil with a terminal
	w          io.WriteCloser // the writing end, or this process's side of the terminal
	from       io.Reader
	copied     *stdio.File      // from, if it is a duplicate of the caller's file
	typist     *terminal.Typist // w is a terminal, unless it is nil
	fail       func(error)      // see Guard
	afterWrite func()           // called after a write
	reading    atomic.Bool      // in from.Read, not in a write to the pipe
	over       chan struct{}    // closed when nothing more is read
	stop       ready.Stop       // of a wait for from, if that is a file that does not block
	done       chan struct{}
	typed      int64 // bytes that were typed
	err        error // valid once done is closed
}

// A reader may return no bytes and no error, perhaps for ever. After maxEmptyReads such reads there is a pause before
// each read, which grows from minPause to maxPause. The end of the command ends the pause, and nothing is read after
// it.
const (
	maxEmptyReads = 100 // in a row, without a pause
	minPause      = 100 * time.Microsecond
	maxPause      = 20 * time.Millisecond
)

func newInput(from io.Reader, config Config) (*input, error) {
	in := &input{from: from, fail: config.Fail, afterWrite: config.Fed, over: make(chan struct{}), done: make(chan struct{})}
	if config.Pipe != nil {
		in.r, in.w, _ = config.Pipe()
		return in, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	in.r, in.w = r, w
	return in, nil
}

// start begins to feed the command, which has been started with the reading end.
func (in *input) start() {
	if in.r != nil {
		in.r.Close()
	}
	in.reading.Store(true)
	go in.run()
}

func (in *input) run() {
	defer close(in.done)
	defer func() { // after fail: the command must not end because of the end of its input before it is aborted
		if in.typist == nil {
			in.w.Close()
		} else if err := in.typist.End(); err != nil && in.err == nil {
			in.err = writing(in.typist.Wrapped(err, in.typed))
		}
		in.afterWrite()
	}()
	Guard(func() { in.err = in.copy() }, func(err error) {
		in.err = err
		in.fail(err)
	})
}

func (in *input) copy() error {
	buf := make([]byte, 32<<10)
	for empty := 0; ; {
		if in.isOver() {
			return nil
		}
		in.reading.Store(true)
		n, err := ready.Read(in.from, buf, &in.stop)
		in.reading.Store(false)
		if n > 0 {
			if werr := in.write(buf[:n]); werr != nil {
				if isClosedPipe(werr) {
					return nil // a command need not read all of its input
				}
				return writing(werr)
			}
			empty = 0
			in.afterWrite()
		}
		if err == io.EOF || in.copied != nil && errors.Is(err, os.ErrClosed) || in.stop.Stopped() && ready.Again(err) {
			return nil
		}
		if err != nil {
			return texts.Wrap("procgroup: reading stdin", err)
		}
		if n <= 0 {
			empty++
			in.pause(empty)
		}
	}
}

// write writes p to the command. At a terminal it is typed: a reader may be somebody's keyboard.
func (in *input) write(p []byte) error {
	if in.typist == nil {
		_, err := in.w.Write(p)
		return err
	}
	n, err := in.typist.Write(p, true, true)
	err = in.typist.Wrapped(err, in.typed)
	in.typed += int64(n)
	return err
}

func writing(err error) error {
	return texts.Wrap("procgroup: writing to the command's stdin", err) // err may be that of the caller's reader
}

// isOver reports whether the command has ended.
func (in *input) isOver() bool {
	select {
	case <-in.over:
		return true
	default:
		return false
	}
}

// pause waits before the next read after a number of empty ones in a row.
func (in *input) pause(empty int) {
	if empty -= maxEmptyReads; empty <= 0 {
		return
	}
	timer := time.NewTimer(min(time.Duration(empty)*minPause, maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-in.over:
	}
}

// isClosedPipe reports whether err is the error of a pipe that has no reader, or that finish has closed.
func isClosedPipe(err error) bool {
	return noReader(err) || errors.Is(err, os.ErrClosed)
}

// finish stops feeding the command. It does not wait for a blocked reader, whose goroutine ends when
// Read returns.
func (in *input) finish(until time.Time) error {
	close(in.over)
	in.stop.Now()
	var stopped error
	if in.typist != nil { // before the terminal is closed, since its modes are asked for
		stopped = in.typist.Stopped()
	}
	in.w.Close()
	if in.copied != nil { // closing it may wait for a file system that does not answer
		patient.Within(closeTime, in.copied, func() { in.copied.Close() })
	}
	if !in.reading.Load() {
		wait(in.done, until)
	}
	select {
	case <-in.done:
		return in.err
	default:
	}
	if stopped != nil {
		stopped = writing(in.typist.Wrapped(stopped, 0))
	}
	return stopped
}

func (in *input) close() {
	if in.r != nil {
		in.r.Close()
	}
	in.w.Close()
	if in.copied != nil {
		patient.Within(closeTime, in.copied, func() { in.copied.Close() })
	}
}

// newTyping returns an input that writes to a terminal. A file is duplicated: if it is that of [exec.Cmd.StdinPipe],
// os/exec closes it as soon as the command is started.
func newTyping(from io.Reader, master *os.File, config Config) (*input, error) {
	in := &input{w: master, from: from, fail: config.Fail, afterWrite: config.Fed, typist: terminal.NewTypist(master, config.Refused), over: make(chan struct{}), done: make(chan struct{})}
	if f, file := from.(*os.File); file {
		made := new(struct { // filled in by a call that may outlast Within
			file *os.File
			err  error
		})
		err := patient.ErrNoAnswer
		// If f is non-blocking, the runtime polls the duplicate.
		if patient.Within(patient.Patience, f, func() { made.file, made.err = terminal.Duplicate(f) }) {
			err = made.err
		}
		if err != nil {
			return nil, fmt.Errorf("procgroup: cmd.Stdin: %w", err)
		}
		in.copied = stdio.New(made.file)
		in.from = in.copied
	}
	return in, nil
}
