package request

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/label"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// grace is how long an SDK may take to return from a call whose context has been cancelled. An SDK that takes longer is
// stuck in a write to a peer that does not read, and the caller must not wait for that.
const grace = 250 * time.Millisecond

// closing is the time between the return of Do and the cancellation of the context of a NoCancel call. In that time the
// SDK begins to close the connection, after which a cancellation no longer reaches the server. The SDK then waits for
// the call, which the cancellation ends.
const closing = 100 * time.Millisecond

// A Call describes one request to [Do].
type Call struct {
	// Session identifies the connection that the request is sent on; see [Limiter.Progress]. If Go cannot compare its
	// value, no progress renews the limit. A client with one connection may leave it nil.
	Session any
	// Method is the JSON-RPC method of the request. It selects the limits.
	Method string
	// Tool and Server name the tool and the server for the log. Either may be "".
	Tool, Server string
	// Token is the progress token that the caller has set: a string, a value of a predeclared integer or float type, a
	// json.Number or a json.RawMessage. nil means no token. With a token of any other type, no progress renews the
	// limit.
	Token any
	// NoCancel is for initialize, which a client must not cancel at the server. Do then returns as soon as a limit
	// fires or ctx ends, and the context of send is cancelled only 100 ms later.
	NoCancel bool
	// Declared holds the limits from [Declarations.Limits]. nil means that the server has declared none.
	Declared *Limits
}

// Do calls send, which sends one request, under the first of these limits that exist: the limits of [WithLimits], the
// limits of c for the method, call.Declared, and the defaults of c.
//
// The context of send ends when a limit fires or ctx ends, unless call.NoCancel is set. This context carries the
// heartbeat of the request: a handler that runs on behalf of the request can call heartbeat.Beat, or suspend the
// idle limit while a person is asked. If token is not "", send must use it as the progress token of the request. If
// token is "", send leaves the token of the request unchanged.
//
// If send returns before a limit fires, Do returns the results of send. Otherwise the error is an [*Error], and the
// value is zero: a value that send returns later is dropped. If send ignores its context, Do returns 250 ms after
// the limit or the end of ctx. If the caller cancels ctx, the error is an *Error that matches context.Canceled; a
// deadline of ctx counts as a total limit.
//
// If no limit applies, and for a notification or the stream of subscriptions/listen, Do calls send with ctx and an
// empty token, and returns the results of send.
//
// A panic of send is a panic of Do. Do panics with a [*timeout.ConfigError] if send is nil. Do is safe for concurrent
// use.
func Do[R any](ctx context.Context, c *Limiter, call Call, send func(ctx context.Context, token string) (R, error)) (R, error) {
	if send == nil {
		panic(&timeout.ConfigError{Key: "send", Value: "nil", Accepted: "one that is not nil"})
	}
	l, ctx := c.limits(ctx, call.Method, call.Declared)
	if l.Timeout <= 0 && l.MaxTotal <= 0 {
		return send(ctx, "")
	}
	var token string
	var wait *waiter
	if l.ResetOnProgress && l.Timeout > 0 {
		if t, w, leave, ok := c.await(call.Session, call.Token); ok {
			token, wait = t, w
			defer leave()
		}
	}
	config := timeout.Config{Idle: l.Timeout, Total: l.MaxTotal, Grace: grace}
	uncancelled := func(ctx context.Context) context.Context { return ctx }
	if call.NoCancel {
		config.Grace = -1
		late, cancel := context.WithCancel(context.Background())
		defer time.AfterFunc(closing, cancel)
		uncancelled = func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			context.AfterFunc(late, cancel)
			return ctx
		}
	}

	value, err := timeout.Do(label.With(ctx, label.Request{Tool: call.Tool, Server: call.Server}), func(ctx context.Context) (R, error) {
		if wait != nil {
			wait.monitor.Store(heartbeat.FromContext(ctx))
		}
		value, err := send(uncancelled(ctx), token)
		if err != nil {
			err = &returned{err}
		}
		return value, err
	}, c.execution(config, timeout.WithName(call.Method))...)

	var zero R
	switch e := err.(type) {
	case nil:
		return value, nil
	case *returned:
		return value, e.error
	case *timeout.Error:
		if r, ok := e.Err.(*returned); ok {
			e.Err = r.error
		}
		return zero, &Error{Doing: fmt.Sprintf("calling %q", call.Method), Reset: wait != nil, Stop: e}
	}
	return zero, err
}

// execution returns the options of c, followed by others, for an execution.
func (c *Limiter) execution(others ...timeout.Option) []timeout.Option {
	opts := make([]timeout.Option, 0, len(c.options)+len(others)+1)
	for _, o := range c.options {
		opts = append(opts, o)
	}
	return append(append(opts, timeout.WithOperation(timeout.OperationRequest)), others...)
}

// A returned wraps the error of send, which may itself be a *timeout.Error, to tell it from an error of timeout.Do.
type returned struct{ error }
