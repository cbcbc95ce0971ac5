package mcpsdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// FollowTasks makes c support tasks: if a server answers a tools/call with a task, CallTool asks for
// the task until the task has ended, at the interval that the server wants, and returns its result, as
// if the call had just taken longer. Questions of the task go to the handlers of c. When the caller's
// context ends, the task is cancelled.
//
// A server of 2025-11-25 may send notifications with the status of the task. They are read on every stream
// of the connection, and c asks only if none has come for the server's interval. If the server keeps the
// task for less than that interval, c asks before that time is over.
//
// With protocol 2026-07-28 every call says that it may be answered with a task. With 2025-11-25 the
// client decides: a tool is called as a task if the server has the capability and lists the tool with
// a taskSupport of "optional" or "required". If c has not listed the tools, they are listed before
// the first call. Other versions have no tasks. The server decides which version is spoken: one on
// [mcp.NewStreamableHTTPHandler] speaks 2026-07-28 only if its options have Stateless, and 2025-11-25
// if they are nil.
//
// The transports of c must be wrapped with [WrapClientTransport]: the SDK does not support tasks,
// and would take a handle for an empty result. On a transport that is not wrapped, c asks for no
// tasks.
//
//	mcpsdk.Limit(client, limits, perMethod)
//	mcpsdk.FollowTasks(client)
//	session, err := client.Connect(ctx, mcpsdk.WrapClientTransport(transport), nil)
//
// Call FollowTasks after [Limit]: then the limits apply to each request that is sent for a call,
// and only the context bounds the call as a whole. If FollowTasks is called before Limit, the
// limits of tools/call apply to the call as a whole, and no progress renews them once there is a
// task. In either case the middleware of c sees a request for a task as a tools/call.
//
// A request for a task that is not answered is made again, with longer waits in between, up to 10 s:
// after a connection that was refused or lost, a limit of the request, an HTTP status of 500, 502,
// 503, 504 or 429, and a JSON-RPC error with the code -32603, with which a server answers if it
// cannot reach its store. The attempts go on for as long as the server keeps the task or, if it has
// not said how long, for 10 min; then the error is that of the last request. The caller's context
// ends them earlier. Any other error ends the call at once, such as that of an unknown task, or of a
// missing authorization. A tools/call is never sent again.
//
// If the task has failed, the error is the JSON-RPC error with which it failed. If another client
// has cancelled the task, errors.Is finds [task.ErrCancelled] in the error, and its text ends with the
// status message of the task.
//
// Call FollowTasks once for a client, before it connects.
func FollowTasks(c *mcp.Client) {
	servers := new(perSession[taskServer])
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			server := servers.of(req.GetSession())
			switch {
			case method == methodCall:
				return follow(ctx, method, req, next, server)
			case method == methodInitialize && server != nil, method == methodList && server.hasTasks():
				return server.learn(ctx, method, req, next)
			}
			return next(ctx, method, req)
		}
	})
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "notifications/tools/list_changed" {
				servers.of(req.GetSession()).forget()
			}
			return next(ctx, method, req)
		}
	})
}

// How often a task is asked for, whatever the server says.
const (
	minPoll = 50 * time.Millisecond
	maxPoll = 30 * time.Second
)

// cancelTime is for how long a tasks/cancel is tried, cancelAgain how far apart, and cancelWait how
// long the caller waits for it.
const (
	cancelTime  = 5 * time.Second
	cancelAgain = 500 * time.Millisecond
	cancelWait  = 250 * time.Millisecond
)

func follow(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler, server *taskServer) (mcp.Result, error) {
	f := &followed{answered: make(map[string]bool), next: methodGet, news: make(chan legacyTask, 1)}
	f.legacy = server.hasTasks() && server.takesTask(ctx, req, next)
	send := func(ctx context.Context, what string) (mcp.Result, error) {
		f.ask(what)
		ctx, done := context.WithCancel(context.WithValue(ctx, followKey{}, f))
		defer done()
		return next(ctx, method, req)
	}
	defer f.leave()
	res, err := send(ctx, methodCall)
	id, poll, state := f.state()
	if id == "" {
		if wire := (*jsonrpc.Error)(nil); f.legacy && errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound {
			server.forget() // it may be called as a task no more
		}
		return res, err
	}
	var polls adapter.Polls
	wait, failing := polls.Answered(poll, f.keptUntil()), false
	answered := func() {
		_, poll, state = f.state()
		wait, failing = polls.Answered(poll, f.keptUntil()), false
	}
	for !state.Final() {
		what := f.nextMethod()
		if (what == methodGet || failing) && f.hear(ctx, min(max(wait, minPoll), maxPoll)) {
			answered()
			continue
		}
		if ctx.Err() == nil {
			res, err = send(ctx, what)
		}
		if ctx.Err() != nil {
			f.cancel(ctx, send)
			return nil, ctx.Err()
		}
		if err != nil && !f.answeredWith(err) {
			if !f.lost(err) || f.fetchFailed(what, err) {
				return nil, err
			}
			if wait, failing = polls.Failed(max(poll, minPoll), f.keptUntil()); !failing {
				return nil, fmt.Errorf("the task %q: %w", id, err)
			}
			continue
		}
		answered()
	}
	if state == task.Cancelled {
		return nil, f.cancelled()
	}
	return res, err
}

// pause waits for d, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// cancel cancels the task, as often as it takes, for a caller that does not wait for long.
func (f *followed) cancel(ctx context.Context, send func(context.Context, string) (mcp.Result, error)) {
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer done()
		for {
			if _, err := send(ctx, methodCancel); err == nil || !f.lost(err) || !pause(ctx, cancelAgain) {
				return
			}
		}
	}()
	wait := time.NewTimer(cancelWait)
	defer wait.Stop()
	select {
	case <-cancelled:
	case <-wait.C:
	}
}
