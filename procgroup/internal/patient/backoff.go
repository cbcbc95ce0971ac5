package patient

import "time"

// A Backoff is the pause between two polls. It is short at first and then grows, so that a poll soon notices a quick
// change, and a long wait takes few polls. The zero Backoff is ready to use.
type Backoff time.Duration

// MaxBackoff is the pause up to which a Backoff grows.
const MaxBackoff = 20 * time.Millisecond

// Sleep sleeps for the pause, but not beyond the deadline, and lengthens the pause. It returns false at once if the
// deadline has passed, and otherwise true.
func (b *Backoff) Sleep(deadline time.Time) bool {
	left := time.Until(deadline)
	if left <= 0 {
		return false
	}
	d := time.Duration(*b)
	if d == 0 {
		d = 100 * time.Microsecond
	}
	time.Sleep(min(d, left))
	*b = Backoff(max(d, min(d*3/2, MaxBackoff)))
	return true
}
