package adapter

import "time"

// NextPoll returns how long a client waits before it asks for its task again: poll, which is what
// the server wants, unless the server keeps the task for less than that. Then it is half of what is
// left, so that the result is not lost between two polls. The task is kept until expires. A zero
// time is ignored, and so is one that has passed while the server still answers.
func NextPoll(poll time.Duration, expires time.Time) time.Duration {
	if left := time.Until(expires); !expires.IsZero() && left > 0 && left <= poll {
		return left / 2
	}
	return poll
}
