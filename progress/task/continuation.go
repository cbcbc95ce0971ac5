package task

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// ContinuationKey is where the _meta of a result that says that a call is still running has, for
// programs, {"id", "tool", "elapsedMs", "message", "progress", "total"}: what to wait with, and
// how far it is.
const ContinuationKey = "io.github.tooldeadline/continuation"

// DefaultWaitTool is the name of the tool that waits for a call that was continued.
const DefaultWaitTool = "wait_for_result"

// A Continuation is how the calls of a server go on whose clients can take no task: the call is
// answered in time with a result that says that it is still running, and another tool waits for
// the rest.
type Continuation struct {
	// After is how long a call may take before it is continued, which should be less than what
	// the client waits. It is also how long the wait tool waits at a time. 0 or less: tools
	// that have a soft limit of their own are continued, and the wait tool waits 30 s.
	After time.Duration
	// Tool is the name of the wait tool; "" is DefaultWaitTool.
	Tool string
}

// Name is the name of the wait tool.
func (c *Continuation) Name() string { panic("not yet") }

// Soft returns after how long a call of a tool is continued whose own soft limit this is: the
// smaller of the two that are above 0; 0, never, where neither is.
func (c *Continuation) Soft(soft time.Duration) time.Duration { panic("not yet") }

// Unlisted reports whether a tool must list no output schema, since a call of it may be continued,
// and has no structured content then: it may run for longer than [Continuation.Soft] under these
// limits. A client would refuse the result.
func (c *Continuation) Unlisted(limits timeout.Config, soft time.Duration) bool { panic("not yet") }

// Definition returns the wait tool as tools/list has it: name, description, inputSchema.
func (c *Continuation) Definition() map[string]any { panic("not yet") }

// A Wait is one call of the wait tool.
type Wait struct {
	// Arguments are the tool's: {"id": "...", "cancel": true}.
	Arguments json.RawMessage
	// Answers are the inputResponses of the call, for a tool that has returned questions.
	Answers map[string]json.RawMessage
	Client  Client
}

// Wait is the wait tool: it waits for the call until that ends, After has passed or ctx ends, and
// returns the fields of the result. That is the call's own, exactly; or says that it is still
// running; or, for an id that is unknown, has expired or belongs to another session, is one whose
// isError is true and that says which. With cancel it aborts the call and returns what that
// leaves.
//
// The progress of the call is passed on by [progress.Report] to the execution of ctx, whose idle
// check is held meanwhile. Run it with no limits of its own, as timeout.NoLimits has it.
//
// The error is an [*Error] where the call has ended with one, and else the cause of ctx; the
// call runs on then.
func (t *Tasks) Wait(ctx context.Context, c *Continuation, w Wait) (map[string]any, error) {
	panic("not yet")
}
