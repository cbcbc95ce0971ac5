package timeout

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/pulse"
)

// A Timer is a timer of a [Clock]. *time.Timer implements Timer, and so do the timers of mock clocks.
type Timer interface {
	// Reset makes the Timer call its function once d has passed, instead of at the instant set before. The result is
	// not used.
	Reset(d time.Duration) bool
	// Stop prevents the Timer from calling its function. The result is not used.
	Stop() bool
}

// A Clock measures the time of an execution; see [WithClock]. T is the type of its timers, which the compiler infers:
// clock.Clock and *clock.Mock of github.com/benbjohnson/clock are Clocks without an adapter. Only durations between
// its instants matter, so it may show any time.
//
// A Clock is for tests: an execution reads it with locks held, and waits for it. Its methods must therefore return at
// once, must not call the execution, and must not call runtime.Goexit. If a method panics, the execution uses the
// system's time instead, which usually ends the execution.
type Clock[T Timer] interface {
	// Now returns the present time. The execution waits for Now.
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed. f may call Now. The execution waits for
	// AfterFunc to return, but not for f.
	AfterFunc(d time.Duration, f func()) T
}

// A guarded is a clock whose panics are recovered, because some would happen on goroutines of the execution. Two
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

// WithClock sets the clock that measures the limits, the grace and the heartbeat of the execution. Nested executions
// inherit c unless they have a clock of their own. Without this option, or if c is nil, the clock is that of the
// enclosing execution or else the standard library's, which testing/synctest can fake.
//
// WithClock is for tests that already have a mock clock. Time on c is taken to be exact, so the execution does not
// look for stalls of the process. The Deadline of the function's context is the system's time plus the time left on c
// at that moment. So code that compares a deadline with the system's time, such as net.Dialer, works with a mock
// clock that stands at 1970. A context.WithTimeout in the function uses the system's time.
func WithClock[T Timer](c Clock[T]) Setting {
	switch own := any(c).(type) {
	case nil:
		return clockOption{}
	case pulse.Clock: // a clock that is wrapped already
		return clockOption{own}
	}
	return clockOption{guarded[T]{c}}
}

type clockOption struct{ clock pulse.Clock }

func (o clockOption) apply(s *settings) { s.clock = o.clock }
func (clockOption) setting()            {}

// Clock returns the clock of the option, or nil. Package lease uses it to measure a lease on the same clock as the
// execution.
func (o clockOption) Clock() pulse.Clock { return o.clock }
