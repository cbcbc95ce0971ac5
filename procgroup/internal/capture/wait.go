package capture

import "time"

// wait waits until done is closed, but not beyond until, and reports whether done was closed.
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

// closeTime is the time that a goroutine which nothing blocks any more gets to return.
const closeTime = 50 * time.Millisecond
