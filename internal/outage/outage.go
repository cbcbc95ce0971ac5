// Package outage says how a client asks for a task again while nobody answers for it.
package outage

import "time"

const (
	// Kept is for how long a task is asked for again of which the server has not said how long it is
	// kept: the retention of package progress/task, after which a task that has ended would be gone.
	Kept = 10 * time.Minute
	// Longest is the longest wait between two tries, unless the server wants to be asked less often.
	Longest = 10 * time.Second
)

// An Outage is a row of tries that have failed. The zero Outage is one that has not begun.
type Outage struct {
	began time.Time
	wait  time.Duration
}

// Next is called after each try that has failed, and returns how long to wait before the next one:
// poll at first, and then twice as long each time, up to the longer of poll and [Longest]. The last
// try is at the instant until which the task is kept: expires, or, where that is zero, [Kept] after
// the first failure. After that ok is false.
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
