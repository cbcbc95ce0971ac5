package adapter

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// A Call is one tools/call that may become a task.
type Call struct {
	Tool   string
	Caller Caller
	// Asked reports whether the params have "task". From 2026-07-28 on it is ignored, as the
	// protocol demands.
	Asked bool
	// Soft and TaskOnly are what [policy.Policy.Soft] returns for the tool: how long the call takes
	// before it may become a task, where 0 means never and less means at once; and whether the tool
	// may only be called as a task or a continuation.
	Soft     time.Duration
	TaskOnly bool
	// Continuation says how a call goes on whose client can take no task. Nil means not at all.
	Continuation *Continuation

	// Changed, if it is not nil, is called with the notification for each change of a task after
	// its handle: notifications/tasks/status for Legacy, notifications/tasks for Extension.
	// It is called for one change at a time, and changes may be skipped. Both protocols leave it to
	// the server whether the notifications are sent at all.
	Changed func(method string, params map[string]any)
	// Await says how long the tool's questions wait for an answer, as for [progress.Await].
	Await []progress.AwaitOption
}

// endsBefore reports whether ctx ends by itself when the soft limit is reached, or earlier. Such a
// deadline is a total of the execution, which it would not be through a link.
func endsBefore(ctx context.Context, soft time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && soft >= 0 && time.Until(deadline) <= soft
}

// Refused returns the error with which [Do] refuses the call, or nil, for a caller that has to know it
// before Do is called.
func (c Call) Refused() error {
	_, _, err := c.plan()
	return err
}

// plan returns what the call is answered with when soft has passed and it has not ended: at once
// where soft is negative.
func (c *Call) plan() (form task.Form, soft time.Duration, _ error) {
	isTask := c.Soft != 0 || c.TaskOnly
	soft = c.Soft
	if soft == 0 {
		soft = -1
	}
	switch {
	case c.Caller.legacy() && c.Asked && !isTask:
		return "", 0, &task.Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("tool %q cannot be called as a task", c.Tool)}
	case c.Caller.legacy() && c.Asked:
		return task.Legacy, -1, nil
	case c.Caller.modern() && c.Caller.Declared && isTask:
		return task.Extension, soft, nil
	}
	if c.Continuation != nil {
		if soft := c.Continuation.Soft(c.Soft); soft > 0 {
			return task.Continued, soft, nil
		}
	}
	switch {
	case c.TaskOnly && c.Caller.modern():
		return "", 0, missingCapability()
	case c.TaskOnly:
		return "", 0, &task.Error{Code: CodeMethodNotFound, Message: fmt.Sprintf("tool %q can only be called as a task", c.Tool)}
	}
	return task.Plain, 0, nil
}
