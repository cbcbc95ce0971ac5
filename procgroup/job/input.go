package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
)

// endTime is how long a Write that finds the input without a reader waits for the end of the command,
// which is the usual reason.
const endTime = time.Second

// errInputClosed is the error of a write to an input that CloseInput or the command has closed.
var errInputClosed = fmt.Errorf("job: the input is closed: %w", io.ErrClosedPipe)

// Write writes p to the standard input of the command. It returns how many bytes were written, and
// the status of the job. Writers take turns.
//
// If the job has ended, or ends before everything is written, the status says so, and the error is
// nil. Otherwise the error is not nil if n < len(p): it is the cause of ctx if ctx is done, and
// matches [io.ErrClosedPipe] if the input was closed. If the command closes its input, Write takes up
// to a second to find out that it has not ended.
//
// At the terminal of [procgroup.Terminal], p is typed as far as it reaches the command as it is. The error is
// a [*procgroup.TypingError] at the first byte that the terminal would drop, because the line is too long, or take
// for itself, such as Ctrl-C: use Type, Interrupt and CloseInput for those.
//
// The input waits in a pipe until the command reads it, so Write blocks only if the pipe is full.
// On Windows, n is 0 if ctx ends a write that has begun, and the write goes on.
func (j *Job) Write(ctx context.Context, p []byte) (n int, s Status, err error) {
	return j.write(ctx, p, false)
}

// Type writes keys as Write does, but also types bytes that the terminal takes for itself, as a person would: 3 is
// Ctrl-C. Like Write, it refuses a byte that stops the output (Ctrl-S), unless a later key lets the output go on.
// Without a terminal, Type does the same as Write.
func (j *Job) Type(ctx context.Context, keys []byte) (n int, s Status, err error) {
	return j.write(ctx, keys, true)
}

func (j *Job) write(ctx context.Context, p []byte, keys bool) (n int, s Status, err error) {
	j.touch()
	n, err = j.input.write(ctx, p, keys)
	if n > 0 {
		j.process.Answered()
	}
	if errors.Is(err, errInputClosed) && !j.input.shut.Load() {
		// Nobody reads the input any more.
		wait := time.NewTimer(endTime)
		defer wait.Stop()
		select {
		case <-j.done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-wait.C:
			j.CloseInput()
		}
	}
	if j.log.Ended() {
		err = nil
	}
	return n, j.Status(), err
}

// CloseInput closes the standard input of the command: after the input that was written before,
// which can still be read, the command finds its end; a Write in progress ends with
// [io.ErrClosedPipe]. Call it right after Start for a command that should find no input.
func (j *Job) CloseInput() {
	j.input.shut.Store(true)
	j.input.close()
	j.process.Answered()
}

// An input writes to the pipe that a command reads, or types at its terminal.
type input struct {
	w    *capture.Keyboard
	turn chan struct{} // holds a value during a write
	shut atomic.Bool   // by CloseInput or by the command, and not because the command has ended
}

func newInput(w *capture.Keyboard) *input { return &input{w: w, turn: make(chan struct{}, 1)} }

func (in *input) close() { in.w.W.Close() }

// write writes p, unless ctx ends before. The end of the command closes the pipe.
func (in *input) write(ctx context.Context, p []byte, keys bool) (int, error) {
	if in.shut.Load() {
		return 0, errInputClosed
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	select {
	case in.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	type written struct {
		n   int
		err error
	}
	done := make(chan written, 1)
	p = slices.Clone(p) // the write may outlive the call
	go func() {
		n, err := in.w.Write(p, keys)
		done <- written{n, err}
	}()
	var r written
	select {
	case r = <-done:
	case <-ctx.Done():
		if err := in.w.SetWriteDeadline(time.Now()); errors.Is(err, os.ErrNoDeadline) {
			go func() {
				<-done
				<-in.turn
			}()
			return 0, context.Cause(ctx)
		}
		r = <-done
		_ = in.w.SetWriteDeadline(time.Time{})
	}
	<-in.turn
	var refused *procgroup.TypingError
	switch {
	case r.err == nil || errors.As(r.err, &refused):
		return r.n, r.err
	case errors.Is(r.err, os.ErrDeadlineExceeded):
		return r.n, context.Cause(ctx)
	case in.shut.Load():
		return r.n, errInputClosed
	}
	return r.n, fmt.Errorf("%w by the command: %w", errInputClosed, r.err)
}
