package patient

import "time"

// Wait waits until done is closed or has a value, which it receives, but not beyond until. It returns true if done has
// ended the wait, or was ready when until had passed already.
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
