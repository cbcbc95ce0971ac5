package request

import (
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
)

const (
	// unansweredKept is how long a client keeps asking for a task if the server has not said how long it
	// keeps the task. It is the retention of package progress/task, after which a task that has
	// ended would be gone.
	unansweredKept = 10 * time.Minute
	// longestPollWait is the longest wait after an attempt that has failed, unless the server asks for a longer one.
	longestPollWait = 10 * time.Second
)

// Polls computes when a client asks for its task again. The zero Polls is ready to use, for a task that the client
// has not asked for yet. Polls is not safe for concurrent use.
type Polls struct {
	failing time.Time // since when, zero if the last attempt was answered
	waits   backoff.Waits
}

// Answered returns how long to wait after an answer: poll, the interval that the server has asked for, unless the
// server keeps the task for less than that. Then it is half of the time left, so that no result is lost between two
// polls. The task is kept until expires. A zero time is ignored, and so is one that has passed while the server still
// answers.
func (p *Polls) Answered(poll time.Duration, expires time.Time) time.Duration {
	*p = Polls{}
	if left := time.Until(expires); !expires.IsZero() && left > 0 && left <= poll {
		return left / 2
	}
	return poll
}

// Failed returns how long to wait after an attempt that has failed: poll at first, then twice as long each time, up to
// the longer of poll and 10 s. The last attempt is at the instant until which the task is kept: expires or, if that is
// zero, 10 min after the first failure, which is as long as tasks are kept by default. After that instant ok is false.
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
