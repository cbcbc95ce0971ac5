package procgroup

import (
	"context"
	"os/exec"
	"reflect"
	"sync/atomic"
	"time"
)

// A mergedContext combines the caller's context with the context of exec.CommandContext. It is done when the first of
// the two is done, and has the earlier deadline, so that the deadline of either is a total limit.
type mergedContext struct {
	context.Context                 // derived from the caller's; the end of command cancels it
	command         context.Context // of exec.CommandContext; nil if there is none, or it cannot be read
	late            atomic.Bool     // a deadline of command, or of the starter, came before Context was done; Err is DeadlineExceeded
}

// contextOf returns the context that was passed to exec.CommandContext, or nil. It reads a private field of cmd,
// because os/exec only calls cmd.Cancel when the context is done, without its error.
func contextOf(cmd *exec.Cmd) context.Context {
	f := reflect.ValueOf(cmd).Elem().FieldByName("ctx")
	if !f.IsValid() || f.Type() != reflect.TypeFor[context.Context]() {
		return nil // a later version of Go has changed the field
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

// commandEnded returns the cause with which to cancel the execution because the context of exec.CommandContext is done.
// If that context cannot be read or is not done, the cause is err. commandEnded sets c.late.
func (c *mergedContext) commandEnded(err error) (cause error) { return c.endedBy(c.command, err) }

// endedBy is commandEnded for another context.
func (c *mergedContext) endedBy(other context.Context, err error) (cause error) {
	if other == nil || other.Err() == nil {
		return err
	}
	if other.Err() == context.DeadlineExceeded && c.Context.Err() == nil {
		c.late.Store(true)
	}
	return context.Cause(other)
}

// contextError reports whether err is the error of a context. os/exec returns it unwrapped if it starts no command
// because the context of exec.CommandContext is done.
func contextError(err error) bool {
	return err == context.Canceled || err == context.DeadlineExceeded
}
