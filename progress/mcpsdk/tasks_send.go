package mcpsdk

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// send sends a notification or a request of a tool to its client. After the handle of a task, the request in ctx has
// been answered, and over HTTP its stream has ended; send then hides that request from the SDK.
func send(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (res mcp.Result, err error) {
	run := adapter.TaskOf(ctx, req.GetSession())
	if run == nil {
		return next(ctx, method, req)
	}
	if strings.HasPrefix(method, "notifications/") {
		return nil, notify(ctx, run, func(ctx context.Context, _ mcp.Meta) error {
			_, err := next(ctx, method, req)
			return err
		})
	}
	err = run.Ask(ctx, func(id string, form task.Form, fetching func() (context.Context, error)) error {
		if id == "" {
			res, err = next(ctx, method, req)
			return err
		}
		if form == task.Legacy {
			req = withMeta("", req, field{task.RelatedKey, map[string]any{"taskId": id}})
		}
		res, err = next(detached{ctx}, method, req)
		if err == nil || ctx.Err() != nil || !transient(err) || req.GetSession().ID() == "" {
			return err
		}
		// The client has no standalone stream. The stream of a request that waits for the result can take the message.
		if waiting, nobody := fetching(); nobody == nil {
			res, err = next(mergedContext{ctx, waiting}, method, req)
		}
		return err
	})
	return res, err
}

// notify sends a notification about a call, with a _meta that protocol 2025-11-25 requires in messages about a task. It
// does nothing if the protocol forbids that after a handle, or if the task is final; see [adapter.Task.Notify].
func notify(ctx context.Context, run *adapter.Task, send func(context.Context, mcp.Meta) error) error {
	return run.Notify(func(id string, form task.Form) error {
		switch {
		case id == "":
			return send(ctx, nil)
		case form != task.Legacy:
			return send(detached{ctx}, nil)
		}
		return send(detached{ctx}, mcp.Meta{task.RelatedKey: map[string]any{"taskId": id}})
	})
}

// detached is a context without values, so that the SDK finds no request in it.
type detached struct{ context.Context }

func (detached) Value(any) any { return nil }

// mergedContext is a context with the end of the embedded context, and the values of another.
type mergedContext struct {
	context.Context
	values context.Context
}

func (a mergedContext) Value(key any) any { return a.values.Value(key) }
