package patient

import "time"

// A Backoff is the pause between looks at something that gives no sign of its own: short at first, then ever
// longer, so that neither a quick end nor a long wait costs much.
type Backoff time.Duration

// MaxBackoff is the longest pause.
const MaxBackoff = 20 * time.Millisecond

// Sleep waits for the pause, until the deadline at the latest. It reports false at the deadline.
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
