package adapter

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/exact"
	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// endsBefore reports whether ctx ends by itself when the handle may be due, or earlier. Such a deadline is a total of
// the execution, which it would not be through a link. endsBefore returns false if ctx has no deadline, or soft is
// negative.
func (c *Call) endsBefore(ctx context.Context, soft time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if c.Within.Idle > 0 {
		soft = min(soft, c.Within.Idle)
	}
	return ok && soft >= 0 && time.Until(deadline) <= soft
}

// plan returns the form of the handle with which the call is answered if it has not ended when soft has passed, or
// has been silent for c.Within.Idle. A negative soft means at once.
func (c *Call) plan() (form task.Form, soft time.Duration, _ error) {
	isTask := c.Soft != 0 || c.TaskOnly
	soft = c.Soft
	if soft == 0 {
		soft = -1
	}
	switch {
	case c.Caller.legacy() && c.Asked != nil && !isTask:
		return "", 0, &task.Error{Code: codeMethodNotFound, Message: fmt.Sprintf("tool %q cannot be called as a task", c.Tool)}
	case c.Caller.legacy() && c.Asked != nil:
		_, err := c.ttl()
		return task.Legacy, -1, err
	case c.Caller.modern() && c.Caller.Declared && isTask:
		return task.Extension, c.within(soft), nil
	}
	if c.Continuation != nil {
		soft := c.Continuation.soft(c.Soft)
		if soft == 0 && c.Within != (policy.Budget{}) {
			soft = math.MaxInt64
		}
		if soft > 0 {
			return task.Continued, c.within(soft), nil
		}
	}
	switch {
	case c.TaskOnly && c.Caller.modern():
		return "", 0, missingCapability()
	case c.TaskOnly:
		return "", 0, &task.Error{Code: codeMethodNotFound, Message: fmt.Sprintf("tool %q can only be called as a task", c.Tool)}
	}
	return task.Plain, 0, nil
}

// within returns soft, cut to the time at which the client must have an answer.
func (c *Call) within(soft time.Duration) time.Duration {
	if c.Within.Left > 0 {
		return min(soft, c.Within.Left)
	}
	return soft
}

// ttl returns for how many milliseconds the client wants its task to be kept, or nil if it does not say.
func (c *Call) ttl() (*float64, error) {
	var asked struct {
		TTL *float64 `json:"ttl"`
	}
	if err := exact.Unmarshal(c.Asked, &asked); err != nil || asked.TTL != nil && *asked.TTL < 0 {
		return nil, &task.Error{Code: codeInvalidParams, Message: fmt.Sprintf(
			"tools/call: task: %s: want an object, and its ttl as a number of milliseconds that is not negative", texts.Short(string(c.Asked), 64))}
	}
	return asked.TTL, nil
}

// leastPolls is the least number of poll intervals for which a result is kept. With less, a client might never fetch
// it.
const leastPolls = 10

// granted returns how long the task is kept, in place of the retention: as long as the client wants, but no longer
// than the retention, and for at least leastPolls polls. It returns 0 if the client does not say.
func (c *Call) granted(poll, retention time.Duration) time.Duration {
	if c.Asked == nil || !c.Caller.legacy() {
		return 0
	}
	ttl, err := c.ttl()
	if err != nil || ttl == nil {
		return 0
	}
	most := float64(retention) / float64(time.Millisecond)
	return min(max(time.Duration(min(*ttl, most)*float64(time.Millisecond)), leastPolls*poll), retention)
}
