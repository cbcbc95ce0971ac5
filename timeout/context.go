package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file implements the function's context: a cancel context of the standard library whose parent is a root.
//
// The standard library cancels a context and its descendants together, with an Err other than Canceled, in two cases
// only: when its own deadline passes, and when a parent with an AfterFunc method calls back. The root therefore has
// an AfterFunc method. Rejected: a deadline of the standard library, which needs a second timer, ignores other
// clocks, and needs the Cause before it is known; and a context with a channel of its own, which costs a goroutine
// for each cancel context derived from it and cancels those a moment later.
//
// The root is not registered with the caller's context. Run, which waits anyway, also waits for that context: so an
// execution takes no lock of its caller's, and the caller's end cannot overtake a limit that is firing. In return,
// the caller's end reaches the function's context on Run's goroutine, perhaps after the caller's CancelFunc has
// returned. Err of the function's context reports the end at once.

// A root is the parent of the function's context.
type root Execution

// never is the Done channel of every root, and is never closed. Package context takes a parent with a nil Done
// channel for a context that never ends. Nothing receives from never: see AfterFunc.
var never = make(chan struct{})

func (r *root) Deadline() (time.Time, bool) { return (*Execution)(r).deadline() }

func (r *root) Done() <-chan struct{} { return never }

// AfterFunc stores propagate for Execution.cancel. The standard library calls AfterFunc once, when it creates the
// context.
func (r *root) AfterFunc(propagate func()) (stop func() bool) {
	r.propagate = propagate
	return func() bool { return false }
}

// Err returns the error with which the function's context ends, or nil while the outcome is not decided.
func (r *root) Err() error {
	if end := r.ended.Load(); end != nil {
		return end.Err()
	}
	return nil
}

// Value returns the value of the caller's context. The standard library also looks up the Cause through Value, by a
// private key. That lookup finds the context in ended, which has no other values.
func (r *root) Value(key any) any {
	if end := r.ended.Load(); end != nil {
		if v := end.Value(key); v != nil {
			return v
		}
	}
	return (*Execution)(r).callersContext().Value(key)
}

// A scope is the context that the function gets. It provides the heartbeat, the end of the total as its deadline, and
// the values of the caller's context. It is the Execution under another type, which saves an allocation.
type scope Execution

// Value returns the heartbeat for the heartbeat's keys, and otherwise the value of the caller's context.
func (s *scope) Value(key any) any {
	if pulse.IsKey(key) {
		return &s.cell
	}
	return s.inner.Value(key)
}

// Done returns a channel that is closed when the execution is stopped or its function has returned.
func (s *scope) Done() <-chan struct{} { return s.inner.Done() }

// Deadline returns the instant at which the enforced total ends (SPEC 3.14).
func (s *scope) Deadline() (time.Time, bool) { return (*Execution)(s).deadline() }

// String prevents fmt from reading the fields of a context in use.
func (s *scope) String() string { return (*Execution)(s).String() }

// cancel cancels the function's context and its descendants with the Err and the Cause of the outcome. err is the Err
// after an abort. The goroutine that has decided the outcome calls cancel, once. cancel calls no method of the
// caller's context, which could delay the stop.
func (e *Execution) cancel(err error) {
	switch {
	case e.stop == nil:
		e.ended.Store(returnedInTime)
	case e.stop.Timeout():
		e.ended.Store(newEnding(context.DeadlineExceeded, e.stop))
	default:
		e.ended.Store(newEnding(err, e.stop.Cause))
	}
	e.propagate()
}

// returnedInTime is the ending of every function that has returned in time. Its Err and its Cause are
// context.Canceled, as after the CancelFunc of context.WithTimeout. Sharing it saves an allocation for each run.
var returnedInTime = newEnding(context.Canceled, nil)

func newEnding(err, cause error) *ending {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return &ending{ctx, err}
}

func (e *ending) Err() error { return e.err }

func (c *enriched) Value(key any) any { return c.values.Value(key) }
