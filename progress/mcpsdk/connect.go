package mcpsdk

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ConnectOptions change what [Connect] does. The zero ConnectOptions are the defaults.
type ConnectOptions struct {
	// Timeout is the limit of each phase; 0 is 5 s, less is no limit.
	Timeout time.Duration
	// Backoff says how often to try again, and when.
	Backoff request.Backoff
	// Session goes to the SDK's Connect; it may be nil.
	Session *mcp.ClientSessionOptions
	// Tools, if it is not nil, makes tools/list the last phase, and is called with the tools of all pages
	// before Connect returns: so a server that connects and then answers nothing is tried again, too.
	// Each page has the limit. Of a server that has no tools it is called with nil.
	Tools func([]*mcp.Tool)
	// Failed, if it is not nil, is called with the error of the last try, and if it returns true,
	// Connect begins again 30 s later, whatever the error is, until it returns false or the context
	// ends. It is called on the goroutine of Connect.
	Failed func(error) (again bool)
}

// Connect connects c to a server, with a limit for each phase, and tries again where that
// fails. Each try gets a transport of its own from the function, since one
// that has been used cannot be used again.
//
// The phases are the connecting of the transport and the handshake. On a client with
// [Limit], the handshake's requests, server/discover and initialize, are a phase each;
// so a server that does not know the former, and says nothing, is reached all the same.
// Without Limit such a server must be named with Session.ProtocolVersion.
// Where Tools is set, tools/list is a phase as well.
//
// A try that fails is cleaned up before the next begins, so no two servers run at once:
// its connection is closed, which for a command means that it is told to end, and then
// made to; Connect waits for that for up to 20 s. Nothing is tried again when the caller's
// context is over, or when the command is not found or may not be executed. Connect gives up
// after the last try, unless Failed says otherwise:
//
//	go mcpsdk.Connect(ctx, client, open, &mcpsdk.ConnectOptions{Failed: func(err error) bool {
//		log.Print(err)
//		return true // again, every 30 s, until ctx ends
//	}})
//
// The context bounds Connect alone, and not the session. The error is that of the last
// try. Of a phase that timed out it is as [Limit] says.
func Connect(ctx context.Context, c *mcp.Client, transport func() (mcp.Transport, error), opts *ConnectOptions) (*mcp.ClientSession, error) {
	var o ConnectOptions
	if opts != nil {
		o = *opts
	}
	if o.Timeout == 0 {
		o.Timeout = adapter.ConnectTimeout
	}
	made, err := adapter.Standing(ctx, o.Failed, func() (connected, error) {
		made, err := request.Retry(ctx, o.Backoff, func(err error) bool { return !adapter.Permanent(err) }, func() (connected, error) {
			t, err := transport()
			if err != nil {
				return connected{}, fmt.Errorf("connecting: %w", err)
			}
			return try(ctx, c, t, o)
		})
		return made, asRPC(err)
	})
	if err == nil && o.Tools != nil {
		o.Tools(made.tools)
	}
	return made.session, asRPC(err)
}

// connected is what a try makes.
type connected struct {
	session *mcp.ClientSession
	tools   []*mcp.Tool
}

// cleanup is how long closing a connection may take. For a command the SDK needs three
// times 5 s at the most.
const cleanup = 20 * time.Second

func try(ctx context.Context, c *mcp.Client, t mcp.Transport, o ConnectOptions) (connected, error) {
	a := &attempt{transport: t, limits: request.Limits{Timeout: o.Timeout}}
	made, err := timeout.Do(ctx, func(limited context.Context) (connected, error) {
		a.ctx = limited
		unhook := context.AfterFunc(limited, a.fail)
		// What the SDK gets is not cancelled: the session outlives this, a server must not
		// be told that initialize is cancelled, and closing the connection ends it all.
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
			_ = session.Close() // it came too late, or its tools did not come
		}
		return connected{}, err
	}, timeout.Config{Idle: o.Timeout, Grace: cleanup}, timeout.WithName("connect"), timeout.WithOperation(timeout.OperationRequest))
	if stop, ok := err.(*timeout.Error); ok {
		return connected{}, asRPC(&request.Error{Doing: "connecting: " + a.phase(), Stop: stop})
	}
	if err != nil {
		return connected{}, fmt.Errorf("connecting: %w", err)
	}
	return made, nil
}
