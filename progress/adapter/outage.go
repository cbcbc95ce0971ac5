package adapter

import "time"

const (
	// outageKept is how long a client keeps asking for a task if the server has not said how long it
	// keeps the task. It is the retention of package progress/task, after which a task that has
	// ended would be gone.
	outageKept = 10 * time.Minute
	// longestOutageWait is the longest wait between two attempts, unless the server asks for a longer one.
	longestOutageWait = 10 * time.Second
)

// An Outage is a series of failed attempts of a client to read a task. It computes when the client asks
// again. The zero Outage is one that has not begun. It is for one goroutine at a time.
type Outage struct {
	began time.Time
	wait  time.Duration
}

// Next returns how long to wait before the next attempt. Call it after each failed attempt. The
// wait is poll at first, and doubles each time, up to the longer of poll and 10 s. The last
// attempt is at the instant until which the task is kept: expires or, if that is zero, 10 min after
// the first failure, which is as long as tasks are kept by default. After that instant ok is false.
func (o *Outage) Next(poll time.Duration, expires time.Time) (wait time.Duration, ok bool) {
	now := time.Now()
	if o.began.IsZero() {
		o.began, o.wait = now, poll
	}
	if expires.IsZero() {
		expires = o.began.Add(outageKept)
	}
	left := expires.Sub(now)
	if left <= 0 {
		return 0, false
	}
	wait = min(o.wait, left)
	o.wait = min(2*o.wait, max(poll, longestOutageWait))
	return wait, true
}

// Begun reports whether an attempt has failed.
func (o *Outage) Begun() bool { return !o.began.IsZero() }
