package timeout

import (
	"time"

	"github.com/benbjohnson/clock"
)

// A Clock tells the time to an execution; see [WithClock]. clock.Clock and
// *clock.Mock of github.com/benbjohnson/clock satisfy it. Only durations between
// its instants matter, so it may show any time.
//
// A clock is the hand of a test: an execution reads it with its locks held and waits for it. So its methods
// have to return at once, must not call back, and must not call runtime.Goexit. In place of one that panics the
// execution takes the system's time, which mostly ends it.
type Clock interface {
	// Now tells the time. The execution waits for it.
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed. f may call Now. The execution waits for
	// AfterFunc, and not for f.
	AfterFunc(d time.Duration, f func()) *clock.Timer
}

// A guarded is a clock whose panics end no process: it is read on goroutines of the execution, too. It is
// equal to another of the same clock.
type guarded struct{ Clock }

func (c guarded) Now() (now time.Time) {
	defer func() {
		if recover() != nil {
			now = time.Now()
		}
	}()
	return c.Clock.Now()
}

func (c guarded) AfterFunc(d time.Duration, f func()) (t *clock.Timer) {
	defer func() {
		if recover() != nil {
			t = clock.New().AfterFunc(d, f)
		}
	}()
	return c.Clock.AfterFunc(d, f)
}
