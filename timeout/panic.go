package timeout

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
)

// A PanicError holds a panic of the function. [Run] returns it under [WithRecover]. Otherwise
// errors.As finds it in the value that Run panics with, unless the function panicked with an error.
// A panic that passes through nested executions has the Stack and the Tool of the innermost.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack of the panic, in the form of debug.Stack
	Tool  string // the name given to WithName
}

// Error returns the value, without the stack, in the bounds that [Error.Error] names.
func (e *PanicError) Error() string { return "panic: " + textOf(e.Value) }

// Unwrap returns the value if it is an error, and otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Format implements [fmt.Formatter]. %+v adds the tool and the stack to the text.
func (e *PanicError) Format(s fmt.State, verb rune) {
	type raw PanicError
	format(s, verb, e, (*raw)(e), e.Stack, aboutTool(e.Tool))
}

// LogValue returns a group of the text and the tool.
func (e *PanicError) LogValue() slog.Value { return logText(e, e.Tool) }

// newPanic holds what was recovered on the function's goroutine. A panic of an execution
// within this one has come here once already, with the stack that matters.
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

// panicked returns the panic of the function, once that has returned, or nil.
func (e *Execution) panicked() *PanicError {
	if e.normal {
		return nil // a function may return the panic of another execution
	}
	p, _ := e.err.(*PanicError)
	return p
}

// relayPanic panics, on Run's goroutine, with what the function has panicked with.
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

// A relayedPanic is what Run panics with. A crash prints its Error, and errors.As finds
// the *PanicError in it.
type relayedPanic struct{ err *PanicError }

func (p relayedPanic) Error() string {
	return fmt.Sprintf("%s\n\nin the supervised function:\n%s", textOf(p.err.Value), p.err.Stack)
}

func (p relayedPanic) Unwrap() error { return p.err }
