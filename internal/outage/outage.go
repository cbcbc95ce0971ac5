// Package outage computes when a client asks for a task again while the server does not answer.
package outage

import "time"

const (
	// Kept is how long a client keeps asking for a task if the server has not said how long it
	// keeps the task. It is the retention of package progress/task, after which a task that has
	// ended would be gone.
	Kept = 10 * time.Minute
	// Longest is the longest wait between two attempts, unless the server asks for a longer one.
	Longest = 10 * time.Second
)

// An Outage is a series of failed attempts. The zero Outage is one that has not begun.
type Outage struct {
	began time.Time
	wait  time.Duration
}

// Next returns how long to wait before the next attempt. Call it after each failed attempt. The
// wait is poll at first, and doubles each time, up to the longer of poll and [Longest]. The last
// attempt is at the instant until which the task is kept: expires or, if that is zero, [Kept] after
// the first failure. After that instant ok is false.
func (o *Outage) Next(poll time.Duration, expires time.Time) (wait time.Duration, ok bool) {
	now := time.Now()
	if o.began.IsZero() {
		o.began, o.wait = now, poll
	}
	if expires.IsZero() {
		expires = o.began.Add(Kept)
	}
	left := expires.Sub(now)
	if left <= 0 {
		return 0, false
	}
	wait = min(o.wait, left)
	o.wait = min(2*o.wait, max(poll, Longest))
	return wait, true
}

// Begun reports whether a try has failed.
func (o *Outage) Begun() bool { return !o.began.IsZero() }
