package pulse

import "time"

// Clock is the part of a clock that an execution needs. A nil Clock in this package means the standard
// library's time, which testing/synctest can fake.
type Clock interface {
	Now() time.Time
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is the common part of *time.Timer and the timers of other clocks.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// Now reads clk, or the standard clock if clk is nil.
func Now(clk Clock) time.Time {
	if clk == nil {
		return time.Now()
	}
	return clk.Now()
}

// AfterFunc calls f on its own goroutine after d has passed on clk. A negative d counts as 0,
// because a mock clock would go back in time.
func AfterFunc(clk Clock, d time.Duration, f func()) Timer {
	if clk == nil {
		return time.AfterFunc(d, f)
	}
	return clk.AfterFunc(max(d, 0), f)
}
