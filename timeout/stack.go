package timeout

import (
	"fmt"

	"github.com/tooldeadline/tooldeadline/internal/stacks"
)

// Stack returns the stacks of the function's goroutine and of those that it has started, in the
// form of [Figures.Stack]. It returns nil if the function has returned or if no stack can be taken:
// taking one stops the world for a moment, so it is not done in a process with thousands of
// goroutines, nor for more than 1 % of the time. The stack may be as old as the last heartbeat.
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

// The largest numbers of goroutines in a process for which a stack is taken. A sample before a
// cancellation delays the cancellation, and a sample after the grace delays Run's return, both by
// 3 to 10 µs for each goroutine.
const (
	budgetBeforeCancel = 2500
	budgetAfterGrace   = 5000
)

// A sampler finds the goroutine of an execution by the receiver of Execution.main. Stacks on
// request have a budget of their own, and take nothing from that of the errors. So do those of abandoned functions, which
// are always reported (SPEC 3.9), however many limits fire meanwhile.
const frame = "/timeout.(*Execution).main("

var sampler, afterGrace, onRequest = stacks.Sampler{Frame: frame, Quiet: 10}, stacks.Sampler{Frame: frame}, stacks.Sampler{Frame: frame}

// showsStack reports whether the error of a limit of that kind has a stack from the start. What
// the processes of a command were doing is of use whichever limit it was.
func (e *Execution) showsStack(kind Kind) bool {
	return kind == ErrIdle || kind == ErrTotal && e.command != nil
}

// stack returns the stacks of the function's goroutine and of the goroutines that it has
// started, or nil if the budget does not suffice.
func (e *Execution) stack(from *stacks.Sampler, budget int) []byte {
	if e.command != nil {
		return e.command.Describe(from != &onRequest)
	}
	all, fresh := from.Take(budget)
	// An older sample may show where the function was before its last beat. With a clock of
	// its own, an execution cannot compare the times.
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
