package timeout

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Timer is a timer of a [Clock]. *time.Timer implements it, and so do the timers of mock clocks.
type Timer interface {
	// Reset makes the Timer call its function once d has passed from now on, and not at the instant set before.
	// The result is not used.
	Reset(d time.Duration) bool
	// Stop keeps the Timer from calling its function.
	Stop() bool
}

// A Clock tells the time to an execution; see [WithClock]. T is its type of timers, which the compiler
// finds by itself: clock.Clock and *clock.Mock of github.com/benbjohnson/clock are Clocks as they are. Only
// durations between its instants matter, so it may show any time.
//
// A Clock is for tests: an execution reads it with locks held, and waits for it. So its methods must return
// at once, must not call the execution, and must not call runtime.Goexit. If a method panics, the execution
// takes the system's time instead, which mostly ends the execution.
type Clock[T Timer] interface {
	// Now tells the time. The execution waits for it.
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed. f may call Now. The execution waits for
	// AfterFunc, and not for f.
	AfterFunc(d time.Duration, f func()) T
}

// A guarded is a clock whose panics are recovered, because goroutines of the execution read it too. Two
// guardeds of the same clock are equal.
type guarded[T Timer] struct{ clock Clock[T] }

func (c guarded[T]) Now() (now time.Time) {
	defer func() {
		if recover() != nil {
			now = time.Now()
		}
	}()
	return c.clock.Now()
}

func (c guarded[T]) AfterFunc(d time.Duration, f func()) (t pulse.Timer) {
	defer func() {
		if recover() != nil {
			t = time.AfterFunc(d, f)
		}
	}()
	return c.clock.AfterFunc(d, f)
}

// WithClock runs the execution on c: its limits, its grace, and the heartbeat. Nested executions
// inherit c. Without this option, or if c is nil, the clock is that of the enclosing execution or
// else the standard library's, which testing/synctest can fake.
//
// WithClock is for tests that already have a mock clock. Time on c is taken to be exact, so the
// execution does not look for stalls of the process. The Deadline of the function's context is the
// system's time plus what is left on c at that moment, so that code which compares a deadline with
// the system's time, such as net.Dialer, works with a mock clock that stands at 1970. A
// context.WithTimeout in the function runs on the system's time.
func WithClock[T Timer](c Clock[T]) Setting {
	switch own := any(c).(type) {
	case nil:
		return clockOption{}
	case pulse.Clock: // the clock of another execution
		return clockOption{own}
	}
	return clockOption{guarded[T]{c}}
}

type clockOption struct{ clock pulse.Clock }

func (o clockOption) apply(s *settings) { s.clock = o.clock }
func (clockOption) setting()            {}

// Clock returns the clock of the option, for package lease, which holds a lease on the clock of its execution.
func (o clockOption) Clock() pulse.Clock { return o.clock }
