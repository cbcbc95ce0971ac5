package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"

	"github.com/tooldeadline/tooldeadline/internal/exact"
)

// defaultWaitTool is the name of the tool that waits for a call that was continued.
const defaultWaitTool = "wait_for_result"

// defaultWait is how long the wait tool waits if After is not set.
const defaultWait = 30 * time.Second

// name returns the name of the wait tool.
func (c *Continuation) name() string {
	if c.Tool == "" {
		return defaultWaitTool
	}
	return c.Tool
}

func (c *Continuation) wait() time.Duration {
	if c.After <= 0 {
		return defaultWait
	}
	return c.After
}

// waitWithin returns how long the wait tool waits: no longer than its client waits for an answer, if the client says
// so.
func (c *Continuation) waitWithin(ctx context.Context) time.Duration {
	call := toolcall.FromContext(ctx)
	if call == nil {
		return c.wait()
	}
	budget, _ := policy.ReadBudget(call.Meta)
	by, _ := budget.Answer(call.Token != nil)
	return policy.Budget{Left: c.wait()}.Shorter(policy.Budget{Left: by.Left}).Shorter(policy.Budget{Left: by.Idle}).Left
}

// within returns a copy of c for a client that must have its answers within b: an After of 0, or one that is longer
// than b, becomes b.
func (c *Continuation) within(b policy.Budget) *Continuation {
	own := *c
	for _, d := range []time.Duration{b.Left, b.Idle} {
		if d > 0 && (own.After <= 0 || d < own.After) {
			own.After = d
		}
	}
	return &own
}

// soft returns the time after which a call of a tool with the given soft limit is continued: the
// smaller of After and soft among those above 0. If neither is, it returns 0, which means never.
func (c *Continuation) soft(soft time.Duration) time.Duration {
	switch {
	case c.After <= 0:
		return max(soft, 0)
	case soft <= 0:
		return c.After
	}
	return min(c.After, soft)
}

// Unlisted reports whether a tool with these limits and this soft limit must list no output schema. That is the case
// if its calls may be continued, because they have no total, or because the total and the grace together exceed the
// time after which a call is continued. The answer to a continued call has no structured content, and a client would
// refuse it for a tool with an output schema.
func (c *Continuation) Unlisted(limits timeout.Config, soft time.Duration) bool {
	if soft = c.soft(soft); soft == 0 {
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
		"name": c.name(),
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

type waitArguments struct {
	ID     *string `json:"id"`
	Cancel bool    `json:"cancel"`
}

// serve answers a call of the wait tool; see [Serve]. The ids in successive answers of a running call differ, and all of
// them stay valid. The error is a [*task.Error] if the call has ended with one, and otherwise the cause of ctx; the call
// then runs on.
func (c *Continuation) serve(ctx context.Context, tasks *task.Tasks, from Caller, arguments json.RawMessage, answers map[string]json.RawMessage) (map[string]any, error) {
	timed, stop := context.WithTimeoutCause(ctx, c.waitWithin(ctx), errStill)
	defer stop()
	finish := func(fields map[string]any) map[string]any {
		if _, ok := fields["resultType"]; !ok && from.modern() {
			fields["resultType"] = "complete"
		}
		return fields
	}
	var args waitArguments
	if len(arguments) > 0 {
		if err := exact.Unmarshal(arguments, &args); err != nil {
			return finish(failed(fmt.Sprintf("%s: arguments: %v", c.name(), err))), nil
		}
	}
	if args.ID == nil {
		return finish(failed(c.name() + `: "id" is missing: it is in the answer of the call that is still running.`)), nil
	}
	id, wait := splitID(*args.ID)
	core, owner := tasks.Core(), from.owner(task.Continued)
	_, err := change(ctx, core.Store, owner, id, func(record *task.Record) bool {
		abort := args.Cancel && !record.Abort && !record.Status.Final()
		record.Abort = record.Abort || abort
		return respond(record, answers) || abort
	})

	if local := find(core, owner, id); local != nil {
		defer local.fetch(ctx)()
	}
	defer heartbeat.Hold(ctx)()
	limited, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	var record task.Record
	var reported progress.Update
	if err == nil {
		record, err = await(limited, core.Store, owner, id, func(r *task.Record) {
			if record = *r; len(r.Questions) > 0 {
				cancel(errStill) // they are the answer
			}
			if u := update(r); u != reported {
				reported = u
				progress.Report(ctx, u)
			}
		})
		if context.Cause(limited) == errStill && ctx.Err() == nil {
			record, err = core.Store.Get(ctx, owner, id)
		}
	} // else the cancel and the answers may be lost, however long the store has taken to say so
	switch {
	case errors.Is(err, task.ErrUnknown):
		return finish(failed(core.Running.Why(owner, id))), nil
	case ctx.Err() != nil && !record.Status.Final():
		return nil, context.Cause(ctx)
	case err != nil:
		return finish(failed(fmt.Sprintf("The store of the calls cannot be reached: %v. Call %s again.", err, c.name()))), nil
	case len(record.Questions) > 0:
		return map[string]any{"resultType": "input_required", "inputRequests": record.Questions}, nil
	case !record.Status.Final():
		return finish(still(&record, wait+1, time.Since(record.Started).Round(100*time.Millisecond))), nil
	}
	fields, err := answerOf(&record)
	if err != nil {
		return nil, err
	}
	return finish(fields), nil
}

var errStill = errors.New("still running")

// splitID returns the id of a call, and which wait for it an id is for: "a" is for the first one, "a.2" for
// the second.
//
// Each answer names the next wait, because hosts end a session whose model calls a tool with the same
// arguments again and again: Gemini CLI, Qwen Code and Cline after five calls. The number is only what
// was presented and 1, so that replicas need not agree on it, and each form stays valid.
func splitID(presented string) (id string, wait uint64) {
	if dot := strings.LastIndexByte(presented, '.'); dot >= 0 {
		if wait, err := strconv.ParseUint(presented[dot+1:], 10, 32); err == nil {
			return presented[:dot], wait
		}
	}
	return presented, 1
}
