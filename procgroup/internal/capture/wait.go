package capture

import "time"

// wait waits for done, but not beyond until, and reports whether done was closed.
func wait(done <-chan struct{}, until time.Time) bool {
	select {
	case <-done:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// closeTime is how long a goroutine that has nothing left to wait for may take to end.
const closeTime = 50 * time.Millisecond
