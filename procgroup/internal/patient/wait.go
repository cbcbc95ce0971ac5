package patient

import "time"

// Wait waits until done is closed or has a value, but not beyond until, and reports which of the two ended the wait.
func Wait[T any](done <-chan T, until time.Time) bool {
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
