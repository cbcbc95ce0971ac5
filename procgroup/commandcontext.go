package procgroup

import (
	"context"
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

// commandEnded returns the cause with which the caller's context is to be cancelled, because that of
// exec.CommandContext has ended. If that context is not known, the cause is err, what is known of its end.
func (c *mergedContext) commandEnded(err error) (cause error) {
	if c.command == nil || c.command.Err() == nil {
		return err
	}
	if c.command.Err() == context.DeadlineExceeded && c.Context.Err() == nil {
		c.late.Store(true)
	}
	return context.Cause(c.command)
}

// contextError reports whether os/exec refused to start the command because the context of
// exec.CommandContext was done. os/exec does not wrap that error.
func contextError(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded
}
