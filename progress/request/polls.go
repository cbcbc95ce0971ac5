package request

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
)

const (
	// unansweredKept is how long a client goes on polling without an answer if the server has not said how long it
	// keeps the task. It is the default retention of package progress/task, after which a task that has ended is
	// deleted.
	unansweredKept = 10 * time.Minute
	// longestPollWait is the longest wait after a failed poll, unless the server has requested a longer interval.
	longestPollWait = 10 * time.Second
)

// Polls computes how long a client waits before it polls a task again. The zero Polls is ready to use for a task that
// has not been polled. Polls is not safe for concurrent use.
type Polls struct {
	failing time.Time // the first failed poll since the last answer; zero if the last poll was answered
	waits   backoff.Waits
}

// Answered returns how long to wait after a poll that was answered. poll is the interval that the server has requested,
// and expires is the instant until which the server keeps the task. The wait is poll or, if the task expires within
// poll, half of the time until then, so that no result is lost between two polls. Answered ignores an expires that is
// zero or has passed.
func (p *Polls) Answered(poll time.Duration, expires time.Time) time.Duration {
	*p = Polls{}
	if left := time.Until(expires); !expires.IsZero() && left > 0 && left <= poll {
		return left / 2
	}
	return poll
}

// Failed returns how long to wait after a poll that failed: poll at first, then twice as long each time, up to the
// longer of poll and 10 s. The last wait ends at expires or, if expires is zero, 10 min after the first failure
// since the last answered poll; 10 min is the default retention of a task. After that instant wait is 0 and ok is
// false: the client gives up.
func (p *Polls) Failed(poll time.Duration, expires time.Time) (wait time.Duration, ok bool) {
	now := time.Now()
	if p.failing.IsZero() {
		p.failing, p.waits = now, backoff.Waits{First: poll, Factor: 2}
	}
	p.waits.Max = max(poll, longestPollWait)
	if expires.IsZero() {
		expires = p.failing.Add(unansweredKept)
	}
	left := expires.Sub(now)
	if left <= 0 {
		return 0, false
	}
	return min(p.waits.Next(), left), true
}
