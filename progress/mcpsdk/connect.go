package mcpsdk

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ConnectOptions configure [Connect]. The zero ConnectOptions, and nil, mean the defaults.
type ConnectOptions struct {
	// Timeout is the limit of each phase. 0 means 5 s; a negative value means no limit.
	Timeout time.Duration
	// Backoff sets how many times Connect tries again, and how long it waits before each try.
	Backoff request.Backoff
	// Session is passed to the SDK's Connect; it may be nil.
	Session *mcp.ClientSessionOptions
	// Tools, if not nil, makes tools/list the last phase, and is called with the tools of all pages before Connect
	// returns. With Tools, Connect also tries again if a server completes the handshake and then does not answer.
	// More than 100 pages are an error. The limit applies to each page, and to Tools, which runs on a goroutine of
	// its own: if Tools takes longer, Connect closes the connection and fails. If the server has no tools, Tools is
	// called with nil.
	Tools func([]*mcp.Tool)
	// Failed, if not nil, is called with the error of the last try, unless the context has ended. If it returns true,
	// Connect begins again 30 s later, whatever the error is, until a try succeeds, Failed returns false, or the context
	// ends. Failed runs on a goroutine of its own, for which Connect waits, after the end of the context up to 1 s.
	Failed func(error) (again bool)
}

// Connect connects c to a server, with a limit for each phase, and tries again if that fails. It calls
// transport for each try, because a transport that has been used cannot be used again.
//
// The phases are the call of transport, the connection of the transport and the handshake. If c has [Limit], each of
// the two requests of the handshake, server/discover and initialize, is a phase, so Connect reaches a server that does
// not answer server/discover. Without Limit, set Session.ProtocolVersion to the version of such a server. If Tools is
// set, tools/list is a phase too.
//
// Connect closes the connection of a failed try before the next begins, so no two servers run at once.
// The SDK closes the stdin of a command, signals it, and then kills it; Connect waits up to 20 s for that.
// Connect does not try again if the caller's context has ended, or if the command is not found or may not
// be executed. It gives up after the last try, unless Failed returns true:
//
//	go mcpsdk.Connect(ctx, client, open, &mcpsdk.ConnectOptions{Failed: func(err error) bool {
//		log.Print(err)
//		return true // again, every 30 s, until ctx ends
//	}})
//
// The end of ctx after Connect has returned does not affect the session. The error is that of the last try or, if
// ctx ends between two tries, a [*request.Error] that matches context.Canceled or context.DeadlineExceeded. If a
// phase timed out, the error is as described at [Limit].
func Connect(ctx context.Context, c *mcp.Client, transport func() (mcp.Transport, error), opts *ConnectOptions) (*mcp.ClientSession, error) {
	var o ConnectOptions
	if opts != nil {
		o = *opts
	}
	if o.Timeout == 0 {
		o.Timeout = connectTimeout
	}
	made, err := request.Retry(ctx, standing, func(err error) bool { return o.Failed != nil && o.Failed(err) }, func() (connected, error) {
		made, err := request.Retry(ctx, o.Backoff, func(err error) bool { return !request.Permanent(err) }, func() (connected, error) {
			t, err := call(ctx, "transport", o.Timeout, transport)
			if err != nil {
				return connected{}, err
			}
			return try(ctx, c, t, o)
		})
		if err == nil && o.Tools != nil {
			if err = show(ctx, made, o); err != nil {
				made = connected{}
			}
		}
		return made, asRPC(err)
	})
	return made.session, asRPC(err)
}

// call calls a function of the caller as a phase. It does not wait for f after the limit, and then drops its result.
func call[T any](ctx context.Context, phase string, limit time.Duration, f func() (T, error)) (T, error) {
	value, err := timeout.Do(ctx, func(context.Context) (T, error) { return f() },
		timeout.Config{Total: max(limit, 0), Grace: -1}, timeout.WithName("connect"), timeout.WithOperation(timeout.OperationRequest))
	if stop, ok := err.(*timeout.Error); ok {
		return value, asRPC(&request.Error{Doing: "connecting: " + phase, Stop: stop})
	}
	if err != nil {
		return value, fmt.Errorf("connecting: %w", err)
	}
	return value, nil
}

// show calls Tools with the listed tools. It closes the session if Tools panics or does not return in time.
func show(ctx context.Context, made connected, o ConnectOptions) (err error) {
	shown := false
	defer func() {
		if !shown {
			disconnect(made.session)
		}
	}()
	_, err = call(ctx, "Tools", o.Timeout, func() (none struct{}, _ error) { o.Tools(made.tools); return })
	shown = err == nil
	return err
}

// disconnect closes a session, and waits for the end of that for up to cleanup.
func disconnect(session *mcp.ClientSession) {
	_ = timeout.Run(context.Background(), func(context.Context) error { return session.Close() }, timeout.Config{Total: cleanup, Grace: -1},
		timeout.WithName("disconnect"), timeout.WithOperation(timeout.OperationRequest), timeout.WithRecover())
}

// connected is the result of a try. The zero value is the result of a try that failed.
type connected struct {
	session *mcp.ClientSession
	tools   []*mcp.Tool
}

// cleanup bounds how long Connect waits for a connection to close. For a command the SDK takes up to three times 5 s.
const cleanup = 20 * time.Second

func try(ctx context.Context, c *mcp.Client, t mcp.Transport, o ConnectOptions) (connected, error) {
	a := &attempt{transport: t, phase: "transport", limits: request.Limits{Timeout: o.Timeout}}
	made, err := timeout.Do(ctx, func(limited context.Context) (connected, error) {
		a.ctx = limited
		unhook := context.AfterFunc(limited, a.fail)
		// The context for the SDK is never cancelled, because the session outlives this function, and
		// because the SDK would send the server a cancellation of initialize, which the protocol
		// forbids. A failed attempt closes the connection instead.
		session, err := c.Connect(context.WithValue(context.WithoutCancel(ctx), attemptKey{}, a), a, o.Session)
		var tools []*mcp.Tool
		if err == nil && o.Tools != nil {
			tools, err = a.list(session)
		}
		if err == nil && unhook() {
			a.succeed()
			return connected{session, tools}, nil
		}
		a.fail() // the SDK does not close the connection after every failure
		if session != nil {
			_ = session.Close() // the session came too late, or the list of its tools failed
		}
		return connected{}, err
	}, timeout.Config{Idle: o.Timeout, Grace: cleanup}, timeout.WithName("connect"), timeout.WithOperation(timeout.OperationRequest))
	if stop, ok := err.(*timeout.Error); ok {
		if made.session != nil { // the stop has overtaken the success
			disconnect(made.session)
		}
		return connected{}, asRPC(&request.Error{Doing: "connecting: " + a.current(), Stop: stop})
	}
	if err != nil {
		return connected{}, fmt.Errorf("connecting: %w", err)
	}
	return made, nil
}

// standing sets when Connect tries again after Failed has returned true (SPEC 8.7).
var standing = request.Backoff{Retries: math.MaxInt, First: 30 * time.Second, Max: 30 * time.Second}

// connectTimeout is the default limit of each phase of connecting.
const connectTimeout = 5 * time.Second
