package mcpsdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// followTasks adds middleware to c that waits for the result of a call that has become a task. The middleware of Limit
// is inside, so the limits apply to each request for the task, and only the context bounds the call as a whole.
func followTasks(c *mcp.Client) {
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

// A tasks/cancel that fails is sent again every cancelAgain, for up to cancelTime. The call returns after cancelWait at
// the latest.
const (
	cancelTime  = 5 * time.Second
	cancelAgain = 500 * time.Millisecond
	cancelWait  = 250 * time.Millisecond
)

func follow(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler, server *taskServer) (mcp.Result, error) {
	f := &followed{followState: followState{next: methodGet}, answered: make(map[string]bool), news: make(chan legacyTask, 1)}
	f.legacy = server.hasTasks() && server.takesTask(ctx, req, next)
	send := func(ctx context.Context, what string) (mcp.Result, error) {
		f.change(func() { f.method, f.cut, f.denied = what, false, false })
		ctx, done := context.WithCancel(context.WithValue(ctx, followKey{}, f))
		defer done()
		return next(ctx, method, req)
	}
	defer f.leave()
	res, err := send(ctx, methodCall)
	now := f.now()
	if now.id == "" {
		if wire := (*jsonrpc.Error)(nil); f.legacy && errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound {
			server.forget() // the tool may no longer be called as a task
		}
		return res, err
	}
	var polls request.Polls
	wait, failing := polls.Answered(now.poll, now.expires), false
	answered := func() {
		now = f.now()
		wait, failing = polls.Answered(now.poll, now.expires), false
	}
	for !now.status.Final() {
		what := f.now().next
		if (what == methodGet || failing) && f.awaitStatus(ctx, min(max(wait, minPoll), maxPoll)) {
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
			if wait, failing = polls.Failed(max(now.poll, minPoll), f.now().expires); !failing {
				return nil, fmt.Errorf("the task %q: %w", now.id, err)
			}
			continue
		}
		answered()
	}
	if now.status == task.Cancelled {
		return nil, f.cancelled()
	}
	return res, err
}

// pause waits for d or the end of ctx. It returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// cancel sends tasks/cancel until the server answers, for up to cancelTime. It returns after cancelWait at the latest,
// and the requests go on.
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
	select {
	case <-cancelled:
	case <-time.After(cancelWait):
	}
}
