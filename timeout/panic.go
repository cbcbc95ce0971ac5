package timeout

import "fmt"

// A PanicError holds a panic of the function. It is what [Run] returns with
// [WithRecover], and what errors.As finds in the error that Run panics with otherwise.
// A panic that comes through nested executions is the innermost's.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // where it did, in the form of debug.Stack
}

// Error gives the value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap gives the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// newPanic holds what was recovered on the function's goroutine. Panics of an execution
// within this one have come here once already, with the stack that matters.
func newPanic(v any, stack func() []byte) *PanicError {
	if r, ok := v.(relayedPanic); ok {
		return r.err
	}
	return &PanicError{Value: v, Stack: stack()}
}

// A relayedPanic is what Run panics with. Panicking with the bare value would lose
// the stack of the goroutine that did it, which is the only one worth seeing; a
// crash prints this one's Error, and errors.As finds the *PanicError in it.
type relayedPanic struct{ err *PanicError }

func (p relayedPanic) Error() string {
	return fmt.Sprintf("%v\n\nin the supervised function:\n%s", p.err.Value, p.err.Stack)
}

func (p relayedPanic) Unwrap() error { return p.err }
