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

// errInputClosed is wrapped by the error of a write to an input that CloseInput or the command has closed.
var errInputClosed = fmt.Errorf("job: the input is closed: %w", io.ErrClosedPipe)

// An input writes to the pipe that a command reads, or types on its terminal.
type input struct {
	w    *capture.Keyboard
	turn chan struct{} // full during a write
	shut atomic.Bool   // CloseInput was called, or a write has found that the command has closed its input
}

func newInput(w *capture.Keyboard) *input { return &input{w: w, turn: make(chan struct{}, 1)} }

func (in *input) close() { in.w.W.Close() }

// write writes p, and returns early if ctx is done or the input is closed, as supervise does at the end of the command.
// The error is the cause of ctx, a TypingError, or wraps errInputClosed.
func (in *input) write(ctx context.Context, p []byte, keys bool) (int, error) {
	if in.shut.Load() {
		return 0, errInputClosed
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	select { // if ctx has ended too, it ends the write
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
	select { // a write that has returned wins
	case r = <-done:
	case <-ctx.Done():
		if err := in.w.SetWriteDeadline(time.Now()); len(done) == 0 && errors.Is(err, os.ErrNoDeadline) {
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
