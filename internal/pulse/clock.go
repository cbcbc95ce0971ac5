package pulse

import (
	"time"

	"github.com/benbjohnson/clock"
)

// Clock is the part of a clock that an execution needs. clock.Clock and
// *clock.Mock satisfy it. A nil Clock in this package means the standard
// library's time, which testing/synctest can fake.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) *clock.Timer
}

// Timer is what *time.Timer and *clock.Timer have in common.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// Now reads clk, or the standard clock when clk is nil.
func Now(clk Clock) time.Time {
	if clk == nil {
		return time.Now()
	}
	return clk.Now()
}

// AfterFunc calls f in its own goroutine once d has passed on clk. A mock clock
// would go back in time for a negative d, so the earliest is now.
func AfterFunc(clk Clock, d time.Duration, f func()) Timer {
	if clk == nil {
		return time.AfterFunc(d, f)
	}
	return clk.AfterFunc(max(d, 0), f)
}
