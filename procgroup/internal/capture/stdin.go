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

// An input copies a reader of the caller to the standard input of the command. The reader may block forever.
type input struct {
	r          io.ReadCloser  // the command's end of the pipe; nil with a terminal
	w          io.WriteCloser // the writing end of the pipe, or this process's side of the terminal
	from       io.Reader
	copied     *stdio.File      // from, if that is a duplicate of the caller's file; otherwise nil
	typist     *terminal.Typist // writes to w, if that is a terminal; otherwise nil
	fail       func(error)      // Config.Fail
	afterWrite func()           // Config.Fed
	reading    atomic.Bool      // the goroutine is in from.Read, not in a write
	over       chan struct{}    // closed by finish
	stop       ready.Stop       // ends a wait for from, if that is a non-blocking file
	done       chan struct{}    // closed when the goroutine has ended
	typed      int64            // number of bytes typed at the terminal; used by the goroutine only
	err        error            // valid once done is closed
}

// A reader may return no bytes and no error, perhaps for ever. After maxEmptyReads such reads there is a pause before
// each read, which grows from minPause to maxPause. finish ends the pause.
const (
	maxEmptyReads = 100 // in a row, without a pause
	minPause      = 100 * time.Microsecond
	maxPause      = 20 * time.Millisecond
)

func inputOf(from io.Reader, config Config) *input {
	return &input{from: from, fail: config.Fail, afterWrite: config.Fed, over: make(chan struct{}), done: make(chan struct{})}
}

// newInput returns an input that writes to a pipe.
func newInput(from io.Reader, config Config) (*input, error) {
	in := inputOf(from, config)
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

// start starts the goroutine that copies. The command must have been started: start closes this process's copy of the
// reading end.
func (in *input) start() {
	if in.r != nil {
		in.r.Close()
	}
	in.reading.Store(true)
	go in.run()
}

func (in *input) run() {
	defer close(in.done)
	defer func() { // runs after fail: the end of the input must not end the command before fail has aborted it
		if in.typist == nil {
			in.w.Close()
		} else if err := in.typist.End(in.typed); err != nil && in.err == nil {
			in.err = writing(err)
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
		if in.stop.Stopped() {
			return nil
		}
		in.reading.Store(true)
		n, err := ready.Read(in.from, buf, &in.stop)
		in.reading.Store(false)
		if n > 0 {
			if werr := in.write(buf[:n]); werr != nil {
				if noReader(werr) || errors.Is(werr, os.ErrClosed) {
					return nil // a command need not read all of its input, and finish closes the pipe
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

// write writes p to the pipe, or types it at the terminal. The terminal acts on the keys in p, such as Ctrl-C: the
// reader may be a person's keyboard.
func (in *input) write(p []byte) error {
	if in.typist == nil {
		_, err := in.w.Write(p)
		return err
	}
	n, err := in.typist.Write(in.typed, p, true, true)
	in.typed += int64(n)
	return err
}

func writing(err error) error {
	return texts.Wrap("procgroup: writing to the command's stdin", err)
}

// pause waits before the next read if more than maxEmptyReads reads in a row were empty. finish ends the wait.
func (in *input) pause(empty int) {
	if empty -= maxEmptyReads; empty <= 0 {
		return
	}
	patient.Wait(in.over, time.Now().Add(min(time.Duration(empty)*minPause, maxPause)))
}

// finish stops the copying and closes the input. Unless the goroutine is in Read, which may never return, finish waits
// until it has ended, but not beyond until. finish returns the error of the copying or, if the goroutine goes on, the
// error if the input has stopped the output of the terminal.
func (in *input) finish(until time.Time) error {
	close(in.over)
	in.stop.Now()
	var stopped error
	if in.typist != nil { // before the terminal is closed, because Stopped reads its modes
		if stopped = in.typist.Stopped(); stopped != nil {
			stopped = writing(stopped)
		}
	}
	in.w.Close()
	in.closeCopied()
	if !in.reading.Load() {
		patient.Wait(in.done, until)
	}
	select {
	case <-in.done:
		return in.err
	default:
	}
	return stopped
}

// close closes an input that was not started.
func (in *input) close() {
	if in.r != nil {
		in.r.Close()
	}
	in.w.Close()
	in.closeCopied()
}

// closeCopied does not wait for a file system that does not answer.
func (in *input) closeCopied() {
	if in.copied != nil {
		_ = patient.Do(closeTime, in.copied, in.copied.Close)
	}
}

// newTyping returns an input that types at a terminal, whose side of this process is master. If from is an *os.File,
// the input reads a duplicate, because os/exec closes the file of [exec.Cmd.StdinPipe] when the command is started. The
// duplication fails with patient.ErrNoAnswer if the file system does not answer.
func newTyping(from io.Reader, master *os.File, config Config) (*input, error) {
	in := inputOf(from, config)
	in.w, in.typist = master, terminal.NewTypist(master, config.Refused)
	if f, file := from.(*os.File); file {
		// If f is non-blocking, the runtime polls the duplicate.
		made, err := patient.Soon(patient.Patience, f, func() (*os.File, error) { return terminal.Duplicate(f) }, func(late *os.File) { _ = late.Close() })
		if err != nil {
			return nil, fmt.Errorf("procgroup: cmd.Stdin: %w", err)
		}
		in.copied = stdio.New(made)
		in.from = in.copied
	}
	return in, nil
}
