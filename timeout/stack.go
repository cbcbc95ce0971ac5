package timeout

import (
	"fmt"

	"github.com/tooldeadline/tooldeadline/internal/stacks"
)

// Stack returns the stacks of the function's goroutine and of the goroutines that it has started, in the form of
// [Figures.Stack]. It returns nil if the function has returned or if no stack can be taken: taking one stops the
// world for a moment, so it is not done in a process with thousands of goroutines, nor for more than 1 % of the time.
// The stack may be as old as the last heartbeat.
func (e *Execution) Stack() []byte {
	if e == nil {
		return nil
	}
	stack := e.stack(&onRequest, budgetAfterGrace)
	e.cell.Lock()
	defer e.cell.Unlock()
	if e.over() {
		return nil // the sample is old
	}
	return stack
}

// The largest numbers of goroutines in a process for which a stack is taken before a cancellation and after the
// grace. Taking it delays the cancellation, or Run's return, by 3 to 10 µs for each goroutine.
const (
	budgetBeforeCancel = 2500
	budgetAfterGrace   = 5000
)

// frame is the function by whose receiver a sampler finds the goroutine of an execution in a stack dump. Stacks on
// request, and stacks of abandoned functions, are rationed separately: an abandoned function's stack is reported
// (SPEC 3.9) however many limits fire meanwhile.
const frame = "/timeout.(*Execution).main("

var sampler, afterGrace, onRequest = stacks.Sampler{Frame: frame, Quiet: 10}, stacks.Sampler{Frame: frame}, stacks.Sampler{Frame: frame}

// showsStack reports whether a stack is taken when a limit of that kind fires: always for the idle limit, and also
// for the total of a command, whose stack describes its processes.
func (e *Execution) showsStack(kind Kind) bool {
	return kind == ErrIdle || kind == ErrTotal && e.command != nil
}

// stack returns the stacks of the function's goroutine and of the goroutines that it has started, or nil if the
// sampler takes none now or the process has more goroutines than budget. For a command it returns the description of
// its processes.
func (e *Execution) stack(from *stacks.Sampler, budget int) []byte {
	if e.command != nil {
		return e.command.Describe(from != &onRequest)
	}
	all, fresh := from.Take(budget)
	// An older sample may show where the function was before its last beat. On a clock given by WithClock, the times
	// cannot be compared.
	if all == nil || (!fresh && (e.cell.Clock() != nil || all.Begun.Before(e.cell.LastTime()))) {
		return nil
	}
	stack := all.Find(fmt.Sprintf("%p", e))
	if stack == nil && fresh && e.running() {
		return []byte("timeout: the stack was not found: the function has not begun, or this version of Go writes stacks in another way")
	}
	return stack
}

// running reports whether the function has not returned.
func (e *Execution) running() bool {
	e.cell.Lock()
	defer e.cell.Unlock()
	return !e.returned
}
