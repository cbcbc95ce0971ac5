package mcpsdk

import (
	"context"
	"maps"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// send sends a notification or a request of a tool to its client. After the handle of a task, the request in ctx has
// been answered, and over HTTP its stream has ended; send then hides that request from the SDK.
func send(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	run := adapter.TaskOf(ctx, req.GetSession())
	if run == nil {
		return next(ctx, method, req)
	}
	if strings.HasPrefix(method, "notifications/") {
		return nil, notify(ctx, run, func(ctx context.Context) error {
			_, err := next(ctx, method, req)
			return err
		})
	}
	id, form := run.Handed()
	if id == "" {
		return next(ctx, method, req)
	}
	done, err := run.InputRequired(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if form == task.Legacy {
		req = related(req, id)
	}
	res, err := next(detached{ctx}, method, req)
	if err == nil || ctx.Err() != nil || !transient(err) || req.GetSession().ID() == "" {
		return res, err
	}
	// The client has no standalone stream. The stream of a request that waits for the result can take the message.
	waiting, nobody := run.Fetching(ctx)
	if nobody != nil {
		return nil, err
	}
	return next(mergedContext{ctx, waiting}, method, req)
}

// notify sends a notification about a call. It does nothing if the protocol forbids that after a handle, or if the task
// is final; see [adapter.Task.Notify].
func notify(ctx context.Context, run *adapter.Task, send func(context.Context) error) error {
	return run.Notify(func() error {
		if id, _ := run.Handed(); id != "" {
			return send(detached{ctx})
		}
		return send(ctx)
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

// relatedTo returns a _meta with the id of the task of run, which protocol 2025-11-25 requires in messages about a
// task. It returns nil if run has not become a task of that protocol.
func relatedTo(run *adapter.Task) mcp.Meta {
	id, form := run.Handed()
	if form != task.Legacy {
		return nil
	}
	return mcp.Meta{task.RelatedKey: map[string]any{"taskId": id}}
}

// related returns a copy of a request with the id of a task in its _meta. It returns req itself if req has no params.
func related(req mcp.Request, id string) mcp.Request {
	p := req.GetParams()
	if missing(p) {
		return req
	}
	params := reflect.New(reflect.TypeOf(p).Elem())
	params.Elem().Set(reflect.ValueOf(p).Elem())
	out := params.Interface().(mcp.Params)
	meta := maps.Clone(out.GetMeta())
	if meta == nil {
		meta = make(map[string]any, 1)
	}
	meta[task.RelatedKey] = map[string]any{"taskId": id}
	out.SetMeta(meta)
	c := reflect.New(reflect.TypeOf(req).Elem())
	c.Elem().Set(reflect.ValueOf(req).Elem())
	c.Elem().FieldByName("Params").Set(params)
	return c.Interface().(mcp.Request)
}
