package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

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
}

// Connect starts and initializes a client, with a limit for each phase, and tries again where
// that fails. Each try gets a client of its own from open, since one that has
// failed cannot be used again.
//
// The phases are the start of the transport and the handshake. The handshake may be two
// requests, server/discover and initialize, each of which has the limit if the client has
// [Limit]; together they have twice that. mcp-go gives up waiting for the former after 5 s,
// see client.WithDiscoverTimeout, so that a server that does not know it is reached.
//
// A try that fails is closed before the next begins, so no two servers run at once; for a
// command that takes mcp-go up to 8 s. Nothing is tried again when the caller's context is
// over, when the command is not found or may not be executed, when authorization is required,
// or when the server speaks another transport.
//
// The context bounds Connect alone, and not the client. The error is that of the last try. Of
// a phase that timed out it is as [Limit] says.
func Connect(ctx context.Context, open func() (*client.Client, error), req mcp.InitializeRequest, opts *ConnectOptions) (*client.Client, *mcp.InitializeResult, error) {
	var o ConnectOptions
	if opts != nil {
		o = *opts
	}
	if o.Timeout == 0 {
		o.Timeout = adapter.ConnectTimeout
	}
	o.Timeout = max(o.Timeout, 0)
	type connected struct {
		client *client.Client
		result *mcp.InitializeResult
	}
	c, err := request.Retry(ctx, o.Backoff, worthwhile, func() (connected, error) {
		c, err := open()
		if err != nil {
			return connected{}, fmt.Errorf("connecting: %w", err)
		}
		result, err := try(ctx, c, req, o.Timeout)
		if err != nil {
			_ = c.Close()
			return connected{}, err
		}
		return connected{c, result}, nil
	})
	return c.client, c.result, asTimeout(err)
}

func worthwhile(err error) bool {
	for _, final := range []error{transport.ErrLegacySSEServer, transport.ErrAuthorizationRequired, transport.ErrOAuthAuthorizationRequired} {
		if errors.Is(err, final) {
			return false
		}
	}
	return !adapter.Permanent(err)
}

// phaseGrace is for a transport that does not look at its context.
const phaseGrace = 250 * time.Millisecond

func try(ctx context.Context, c *client.Client, req mcp.InitializeRequest, limit time.Duration) (*mcp.InitializeResult, error) {
	// The transport's context is that of the connection: over SSE and for a command it must
	// not end with the phase, unless the phase fails.
	alive, end := context.WithCancelCause(context.WithoutCancel(ctx))
	_, err := phase(ctx, "transport", limit, func(limited context.Context) (struct{}, error) {
		unhook := context.AfterFunc(limited, func() { end(context.Cause(limited)) })
		defer unhook()
		return struct{}{}, c.Start(alive)
	})
	if err != nil {
		end(err)
		return nil, err
	}
	result, err := phase(WithLimits(ctx, ClientLimits{Timeout: limit}), "handshake", 2*limit, func(ctx context.Context) (*mcp.InitializeResult, error) {
		return c.Initialize(ctx, req)
	})
	if err != nil {
		end(err)
		return nil, err
	}
	return result, nil
}

func phase[T any](ctx context.Context, name string, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	value, err := timeout.Do(ctx, do, timeout.Config{Total: limit, Grace: phaseGrace},
		timeout.WithName("connect"), timeout.WithOperation(timeout.OperationRequest))
	if stop, ok := err.(*timeout.Error); ok {
		return value, asTimeout(&request.Error{Doing: "connecting: " + name, Stop: stop})
	}
	if err != nil {
		return value, fmt.Errorf("connecting: %w", err)
	}
	return value, nil
}
