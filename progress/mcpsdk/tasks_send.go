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

// send sends what a tool has for the client, whose call may have been answered with a handle
// already. Then the context is that of a request that is over, and over HTTP the SDK would look for its
// stream.
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
	// The only stream is that of a request that waits for the result, if there is one.
	waiting, nobody := run.Fetching(ctx)
	if nobody != nil {
		return nil, err
	}
	return next(mergedContext{ctx, waiting}, method, req)
}

// notify sends a notification about a call, unless its client must not get it any more.
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

// mergedContext ends with one context and has the values of another.
type mergedContext struct {
	context.Context
	values context.Context
}

func (a mergedContext) Value(key any) any { return a.values.Value(key) }

// relatedTo returns the _meta with the id of the task that a message belongs to, as protocol 2025-11-25 has it. It
// returns nil if run is not a task of that protocol.
func relatedTo(run *adapter.Task) mcp.Meta {
	id, form := run.Handed()
	if form != task.Legacy {
		return nil
	}
	return mcp.Meta{task.RelatedKey: map[string]any{"taskId": id}}
}

// related returns the request as one that belongs to a task.
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
