package timeout

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
)

// newPanic returns the PanicError for v, which was recovered on the function's goroutine. For a panic
// of a nested execution, it keeps the stack of the nested function.
func (e *Execution) newPanic(v any) *PanicError {
	if r, ok := v.(relayedPanic); ok {
		return r.err
	}
	if n := e.entry.Load(); n != nil {
		if p := n.passing.Load(); p != nil && reflect.ValueOf(v).Comparable() && p.Value == v {
			return p
		}
	}
	return &PanicError{Value: v, Stack: debug.Stack(), Tool: e.tool}
}

// panicked returns the panic of the function, or nil if the function did not panic. The function has ended.
func (e *Execution) panicked() *PanicError {
	if e.normal {
		return nil // a function may return the panic of another execution
	}
	p, _ := e.err.(*PanicError)
	return p
}

// relayPanic panics on Run's goroutine with the panic of the function.
//
// A bare value would lose the stack of the goroutine that panicked, which is the only one worth
// seeing; so it is put into an error. But an error is raised as it is: code that recovers it may
// compare it, as net/http does with its ErrAbortHandler, by == or by its type. A crash prints it
// all the same, because the panic that it takes the place of has not been recovered and is printed
// first. A runtime.Error is never compared.
func (e *Execution) relayPanic() {
	p := e.panicked()
	err, ok := p.Value.(error)
	if _, crash := err.(runtime.Error); !ok || crash {
		panic(relayedPanic{p})
	}
	if outer := e.enclosing(); outer != nil {
		outer.identity().passing.Store(p)
	}
	defer panic(err)
	panic(relayedPanic{p})
}

// A relayedPanic is the value with which Run panics. A crash prints its Error, and errors.As finds
// the *PanicError in it.
type relayedPanic struct{ err *PanicError }

func (p relayedPanic) Error() string {
	return fmt.Sprintf("%s\n\nin the supervised function:\n%s", textOf(p.err.Value), p.err.Stack)
}

func (p relayedPanic) Unwrap() error { return p.err }
