package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ContinuationKey is where the _meta of a result that says that a call is still running has, for
// programs, {"id", "tool", "elapsedMs", "message", "progress", "total"}: what to wait with, and
// how far it is.
const ContinuationKey = "io.github.tooldeadline/continuation"

// DefaultWaitTool is the name of the tool that waits for a call that was continued.
const DefaultWaitTool = "wait_for_result"

// defaultWait is how long the wait tool waits where nobody says how long.
const defaultWait = 30 * time.Second

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
func (c *Continuation) Name() string {
	if c.Tool == "" {
		return DefaultWaitTool
	}
	return c.Tool
}

func (c *Continuation) wait() time.Duration {
	if c.After <= 0 {
		return defaultWait
	}
	return c.After
}

// Soft returns after how long a call of a tool is continued whose own soft limit this is: the
// smaller of the two that are above 0; 0, never, where neither is.
func (c *Continuation) Soft(soft time.Duration) time.Duration {
	switch {
	case c.After <= 0:
		return max(soft, 0)
	case soft <= 0:
		return c.After
	}
	return min(c.After, soft)
}

// Unlisted reports whether a tool must list no output schema, since a call of it may be continued,
// and has no structured content then: it may run for longer than [Continuation.Soft] under these
// limits. A client would refuse the result.
func (c *Continuation) Unlisted(limits timeout.Config, soft time.Duration) bool {
	if soft = c.Soft(soft); soft == 0 {
		return false
	}
	limits, _ = limits.Normalize()
	grace := limits.Grace
	if grace == 0 {
		grace = timeout.DefaultGrace
	}
	return limits.Total == 0 || limits.Total > soft-max(grace, 0)
}

// Definition returns the wait tool as tools/list has it: name, description, inputSchema.
func (c *Continuation) Definition() map[string]any {
	return map[string]any{
		"name": c.Name(),
		"description": "Waits for the result of a tool call that was answered with \"Still running\", and returns it. " +
			"If the call is still running after " + seconds(c.wait()) + "s, says so; then call this tool again. " +
			"With cancel, stops the call and returns what it has got so far.",
		"inputSchema": map[string]any{
			"type": "object",
			"properties": map[string]any{
				"id":     map[string]any{"type": "string", "description": "The id from the \"Still running\" answer."},
				"cancel": map[string]any{"type": "boolean", "description": "Stop the call."},
			},
			"required": []string{"id"},
		},
	}
}

// A Wait is one call of the wait tool.
type Wait struct {
	// Arguments are the tool's: {"id": "...", "cancel": true}.
	Arguments json.RawMessage
	// Answers are the inputResponses of the call, for a tool that has returned questions.
	Answers map[string]json.RawMessage
	Client  Client
}

type waitArguments struct {
	ID     *string `json:"id"`
	Cancel bool    `json:"cancel"`
}

// Wait is the wait tool: it waits for the call until that ends, After has passed or ctx ends, and
// returns the fields of the result. That is the call's own, exactly; or says that it is still
// running; or, for an id that is unknown, has expired or belongs to another session, is one whose
// isError is true and that says which. With cancel it aborts the call and returns what that
// leaves. Where the tool has returned questions, they are the result, as inputRequests, and the
// answers come with the next call.
//
// The progress of the call is passed on by [progress.Report] to the execution of ctx, whose idle
// check is held meanwhile. Run it with no limits of its own, as timeout.NoLimits has it.
//
// The error is an [*Error] where the call has ended with one, and else the cause of ctx; the
// call runs on then.
func (t *Tasks) Wait(ctx context.Context, c *Continuation, w Wait) (map[string]any, error) {
	timer := time.NewTimer(c.wait())
	defer timer.Stop()
	finish := func(fields map[string]any) map[string]any {
		if _, has := fields["resultType"]; !has && w.Client.modern() {
			fields["resultType"] = "complete"
		}
		return fields
	}
	var args waitArguments
	if len(w.Arguments) > 0 {
		if err := json.Unmarshal(w.Arguments, &args); err != nil {
			return finish(failed(fmt.Sprintf("%s: arguments: %v", c.Name(), err))), nil
		}
	}
	if args.ID == nil {
		return finish(failed(c.Name() + `: "id" is missing: it is in the answer of the call that is still running.`)), nil
	}
	id, owner := *args.ID, w.Client.owner(Continued)
	_, err := t.change(ctx, owner, id, func(record *Record) bool {
		abort := args.Cancel && !record.Abort && !record.Status.Final()
		record.Abort = record.Abort || abort
		return record.respond(w.Answers) || abort
	})

	defer heartbeat.Hold(ctx)()
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-timer.C:
			lastOfAll(limited.Done())
			cancel(errStill)
		case <-limited.Done():
		}
	}()
	var record Record
	var reported progress.Update
	if err == nil {
		record, err = t.await(limited, owner, id, func(r *Record) {
			if record = *r; len(r.Questions) > 0 {
				cancel(errStill) // they are the answer
			}
			if u := r.update(); u != reported {
				reported = u
				progress.Report(ctx, u)
			}
		})
	}
	if context.Cause(limited) == errStill && ctx.Err() == nil {
		record, err = t.store.Get(ctx, owner, id)
	}
	switch {
	case errors.Is(err, ErrUnknown):
		return finish(failed(t.continued.why(id, owner))), nil
	case ctx.Err() != nil && !record.Status.Final():
		return nil, context.Cause(ctx)
	case err != nil:
		return finish(failed(fmt.Sprintf("The store of the calls cannot be reached: %v. Call %s again.", err, c.Name()))), nil
	case len(record.Questions) > 0:
		return map[string]any{"resultType": "input_required", "inputRequests": record.Questions}, nil
	case !record.Status.Final():
		return finish(record.still(time.Since(record.Started).Round(100 * time.Millisecond))), nil
	}
	fields, err := record.answer()
	if err != nil {
		return nil, err
	}
	return finish(fields), nil
}

var errStill = errors.New("still running")

// still returns the fields of a result that says that the call is still running.
func (r *Record) still(elapsed time.Duration) map[string]any {
	id, _ := json.Marshal(r.ID)
	text := "Still running after " + seconds(elapsed) + "s."
	if at := r.message(); at != "" {
		text += "\n" + at
	}
	text += fmt.Sprintf("\nCall %s with {\"id\": %s} to wait for the result.", r.WaitTool, id)
	meta := map[string]any{"id": r.ID, "tool": r.WaitTool, "elapsedMs": float64(elapsed) / float64(time.Millisecond)}
	if r.Message != "" {
		meta["message"] = r.Message
	}
	if r.Progress != 0 {
		meta["progress"] = r.Progress
	}
	if r.Total > 0 {
		meta["total"] = r.Total
	}
	fields := map[string]any{
		"content": []any{map[string]any{"type": "text", "text": text}},
		"_meta":   map[string]any{ContinuationKey: meta},
	}
	if r.Version >= string(Extension) {
		fields["resultType"] = "complete"
	}
	return fields
}

func failed(text string) map[string]any {
	return map[string]any{
		"content": []any{map[string]any{"type": "text", "text": text}},
		"isError": true,
	}
}

// seconds writes a duration in seconds, in the shortest decimal form.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// continued remembers the newest continuations of this process for longer than the store keeps
// them, so that a client can be told why there is no result.
type continued struct {
	mu     sync.Mutex
	owners map[string]string // by id
	order  []string          // a ring, the oldest at next
	next   int
}

// maxContinued is how many continuations are remembered.
const maxContinued = 4096

func (c *continued) add(id, owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners == nil {
		c.owners = make(map[string]string)
	}
	c.owners[id] = owner
	if len(c.order) < maxContinued {
		c.order = append(c.order, id)
		return
	}
	delete(c.owners, c.order[c.next])
	c.order[c.next] = id
	c.next = (c.next + 1) % maxContinued
}

// why says why there is no call with an id.
func (c *continued) why(id, owner string) string {
	c.mu.Lock()
	of, known := c.owners[id]
	c.mu.Unlock()
	id = shorten(id)
	switch {
	case !known:
		return fmt.Sprintf("The id %q is unknown: no call has it.", id)
	case of != owner:
		return fmt.Sprintf("The call with the id %q belongs to another session.", id)
	}
	return fmt.Sprintf("The result of the call with the id %q has expired.", id)
}
