package timeout

import (
	"context"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// This file is the function's context: a cancel context of the standard library's under
// a root of ours.
//
// The standard library cancels a context with an Err of its choice, and with it, at
// once, all that are made from it, in two cases only: when a deadline of its own passes,
// and when a parent that has a method AfterFunc calls back. The first was tried: it needs
// a second timer, knows nothing of another clock, and has to be given the Cause before
// the Cause can be known. A context of ours alone, with a channel of its own, was
// tried too: it costs a goroutine for each cancel context that is made from it, through
// a value or a label, and cancels those a moment later. So the root has the method.
//
// The root is in no list of the caller's context. Run, which waits anyway, also waits for that context's
// end: an execution takes no lock of its caller's, and the end of a caller cannot overtake a limit that
// is firing. The price is that the end reaches the function's context on Run's goroutine, perhaps after
// the caller's CancelFunc has returned; Err of the function's context shows the end without waiting.

// A root is the parent of the function's context.
type root Execution

// never is the Done channel of every root: package context takes a parent without one for a parent that never ends.
// Nobody waits for it: see AfterFunc.
var never = make(chan struct{})

func (r *root) Deadline() (time.Time, bool) { return (*Execution)(r).deadline() }

func (r *root) Done() <-chan struct{} { return never }

// AfterFunc keeps propagate for cancel. The standard library calls AfterFunc once, while it makes the context.
func (r *root) AfterFunc(propagate func()) (stop func() bool) {
	r.propagate = propagate
	return func() bool { return false }
}

// Err returns the error with which the context that is made from the root ends, and nil until that is decided.
func (r *root) Err() error {
	if end := r.ended.Load(); end != nil {
		return end.Err()
	}
	return nil
}

// Value returns the value of the caller's context. The standard library also looks for the Cause
// through Value, by a key that only it knows. That key finds the context in ended, which has no other
// value.
func (r *root) Value(key any) any {
	if end := r.ended.Load(); end != nil {
		if v := end.Value(key); v != nil {
			return v
		}
	}
	return (*Execution)(r).callersContext().Value(key)
}

// A scope is the function's context. It has the heartbeat, the total as its deadline, and the values of the
// caller's context. It is the execution under another type, so that it costs no allocation.
type scope Execution

// Value returns the heartbeat for its key, and otherwise the value of the caller's context.
func (s *scope) Value(key any) any {
	if pulse.IsKey(key) {
		return &s.cell
	}
	return s.inner.Value(key)
}

// Done is closed when the execution is stopped, or its function has returned.
func (s *scope) Done() <-chan struct{} { return s.inner.Done() }

// Deadline returns the instant at which the total ends (SPEC 3.14).
func (s *scope) Deadline() (time.Time, bool) { return (*Execution)(s).deadline() }

// String keeps fmt from reading the fields of a context that is in use.
func (s *scope) String() string { return (*Execution)(s).String() }

// cancel ends the function's context, and the contexts made from it, with the Err and the Cause of the
// outcome; err is the Err after an abort. The goroutine that has decided the outcome calls cancel, once.
// cancel calls no method of the caller's context, which could delay the stop.
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

// returnedInTime is the ending for a function that has returned in time. Canceled is also the Cause,
// as after the cancel function of context.WithTimeout. All executions share this ending, so that a run
// does not allocate one.
var returnedInTime = newEnding(context.Canceled, nil)

func newEnding(err, cause error) *ending {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return &ending{ctx, err}
}

func (e *ending) Err() error { return e.err }

func (c *enriched) Value(key any) any { return c.values.Value(key) }
