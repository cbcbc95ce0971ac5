package request

import (
	"context"
	"fmt"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/label"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// grace is how long an SDK may take to return from a call whose context has been cancelled.
// An SDK returns at once, unless it is stuck in a write to a peer that does not read; the
// caller must not wait for that.
const grace = 250 * time.Millisecond

// closing is how long the SDK has, after a call that must not be cancelled has failed,
// to close the connection, before the call is cancelled after all. It waits for the
// call to end once it has begun to close, and cancels nothing at the server any more.
const closing = 100 * time.Millisecond

// A Call describes one request to [Do].
type Call struct {
	// Session identifies the connection that the request is sent on; see [Limiter.Progress]. A Session that
	// cannot be compared is equal to no other, so no progress renews the limit. A client with
	// one connection may leave it nil.
	Session any
	// Method is the method of the request, which selects its limits.
	Method string
	// Tool is the name of the tool that is called, and Server names the server, for the log. Either may
	// be "".
	Tool, Server string
	// Token is the progress token that the caller has set: a string, a number of a type of Go's, or a
	// json.Number or json.RawMessage. nil means none. With any other token no progress renews the limit.
	Token any
	// NoCancel is for initialize, which must not be cancelled at the server. The context
	// of send is then cancelled only 100 ms after Do has returned.
	NoCancel bool
	// Declared are the limits that the server has declared for the tool or the method, as the
	// adapter has read them. nil means none.
	Declared *Limits
}

// Do sends one request by calling send, under the first of these limits that exist: those of
// [WithLimits], those that c has for the method, call.Declared, and the defaults of c.
//
// The context of send ends when a limit fires. It carries the heartbeat of the request, so that a handler
// that is called on behalf of the request can beat, or hold the idle check while a person is asked. If token
// is not "", send must send the request with it as the progress token, and otherwise with the token that the
// request has.
//
// If send returns before a limit fires, Do returns what send returned. Otherwise the error is an
// [*Error], and the value is zero: a value that send returns later is dropped. If send ignores its
// context, Do returns 250 ms after the limit. If the caller cancels ctx, the error is an *Error that
// matches context.Canceled; a deadline of ctx counts as a total limit.
//
// If no limit applies, and for a notification or the stream of subscriptions/listen, Do calls send with
// ctx and returns its result.
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

// execution returns the options of an execution: those of c, and then others.
func (c *Limiter) execution(others ...timeout.Option) []timeout.Option {
	opts := make([]timeout.Option, 0, len(c.options)+len(others)+1)
	for _, o := range c.options {
		opts = append(opts, o)
	}
	return append(append(opts, timeout.WithOperation(timeout.OperationRequest)), others...)
}

// A returned is an error of send. It distinguishes that error, which may itself be a *timeout.Error, from the errors
// of Do.
type returned struct{ error }
