package timeout

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
)

// newPanic returns the PanicError for v, which was recovered on the function's goroutine. For the panic of a nested
// execution, it returns the PanicError of the nested function, with its stack, unless the value is not comparable.
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

// panicked returns the panic of the function, or nil if the function did not panic. It may be called once the
// function has ended.
func (e *Execution) panicked() *PanicError {
	if e.normal {
		return nil // err may be the PanicError of another execution, which the function returned
	}
	p, _ := e.err.(*PanicError)
	return p
}

// relayPanic panics on Run's goroutine with the panic of the function.
//
// A value that is not an error is wrapped in a relayedPanic, which prints the stack of the goroutine that panicked;
// the value alone would lose it. So is a runtime.Error, which no code compares. Any other error is passed on
// unchanged, because code that recovers it may compare it, as net/http does with ErrAbortHandler, or check its type.
// A crash prints the stack even then: the panic with the error replaces a panic with a relayedPanic, and the runtime
// prints both.
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

// A relayedPanic is the error that Run panics with if the function's value cannot be passed on unchanged. A crash
// prints its Error, and errors.As finds the *PanicError in it.
type relayedPanic struct{ err *PanicError }

func (p relayedPanic) Error() string {
	return fmt.Sprintf("%s\n\nin the supervised function:\n%s", textOf(p.err.Value), p.err.Stack)
}

func (p relayedPanic) Unwrap() error { return p.err }
