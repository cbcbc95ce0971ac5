package procgroup

import (
	"context"
	"os"
	"os/exec"
	"reflect"
	"sync/atomic"
	"time"
)

// A mergedContext is the caller's context together with that of exec.CommandContext: it ends with the
// first of the two, and has the earlier deadline, so that a deadline is a total whichever of them has it.
type mergedContext struct {
	context.Context                 // the caller's, which the end of the command's context cancels
	command         context.Context // of exec.CommandContext; nil if there is none, or it is not known
	late            atomic.Bool     // the command's deadline has cancelled it
}

// contextOf returns the context that was given to exec.CommandContext, or nil. os/exec keeps it to itself:
// it tells Cancel that the context has ended, and not how.
func contextOf(cmd *exec.Cmd) context.Context {
	f := reflect.ValueOf(cmd).Elem().FieldByName("ctx")
	if !f.IsValid() || f.Type() != reflect.TypeFor[context.Context]() {
		return nil // in a later version of Go
	}
	return *(*context.Context)(f.Addr().UnsafePointer())
}

func (c *mergedContext) Deadline() (time.Time, bool) {
	at, ok := c.Context.Deadline()
	if c.command == nil {
		return at, ok
	}
	if own, has := c.command.Deadline(); has && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

func (c *mergedContext) Err() error {
	err := c.Context.Err()
	if err != nil && c.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// commandEnded cancels the execution in the way in which the context of exec.CommandContext has ended. If that context
// is not known, err is what is known of its end.
func (p *Process) commandEnded(err error) {
	if command := p.merged.command; command != nil && command.Err() != nil {
		err = context.Cause(command)
		if command.Err() == context.DeadlineExceeded && p.ctx.Err() == nil {
			p.merged.late.Store(true)
		}
	}
	p.cancel(err)
}

// startFailure turns the error that os/exec returns if the context of exec.CommandContext is
// already done into the end of the execution.
func (p *Process) startFailure(ctx context.Context, err error) error {
	if contextError(err) {
		p.commandEnded(err)
		<-ctx.Done()
	}
	return err
}

// commandContextDone is called when the context of exec.CommandContext is done. If that context is
// the caller's or one of its ancestors, the execution is cancelled as well, with the right cause.
// That may take a moment: a context is done before it cancels the contexts derived from it.
func (p *Process) commandContextDone(ctx context.Context) error {
	moment := time.NewTimer(10 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-p.caller.Done():
	case <-ctx.Done():
	case <-moment.C:
		p.commandEnded(context.Canceled)
	}
	return os.ErrProcessDone // tells os/exec that there is nothing to kill
}
