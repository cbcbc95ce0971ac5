package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// ConnectOptions configure [Connect]. The zero ConnectOptions, and nil, mean the defaults.
type ConnectOptions struct {
	// Timeout is the limit of each phase. 0 means 5 s; a negative value means no limit.
	Timeout time.Duration
	// Backoff sets how many times Connect tries again, and how long it waits before each try.
	Backoff request.Backoff
	// Tools, if not nil, makes tools/list the last phase, and is called with the tools of all pages before Connect
	// returns. With Tools, Connect also tries again if a server completes the handshake and then does not answer.
	// More than 100 pages are an error. The limit applies to each page, and to Tools, which runs on a goroutine of
	// its own: if Tools takes longer, Connect closes the connection and fails. If the server has no tools, Tools is
	// called with nil.
	Tools func([]mcp.Tool)
	// Failed, if not nil, is called with the error of the last try, unless the context has ended. If it returns true,
	// Connect begins again 30 s later, whatever the error is, until a try succeeds, Failed returns false, or the context
	// ends. Failed runs on a goroutine of its own, for which Connect waits, after the end of the context up to 1 s.
	Failed func(error) (again bool)
}

// Connect starts and initializes a client, with a limit for each phase, and tries again if that fails.
// It calls open for each try, because a client that has failed cannot be used again.
//
// The phases are the call of open, the start of the transport and the handshake. The handshake may be two requests,
// server/discover and initialize, each of which has the limit if the client has [Limit]; together they
// have twice that. mcp-go stops waiting for server/discover after 5 s (see
// client.WithDiscoverTimeout), so Connect reaches a server that does not answer it, unless the client has no Limit and
// twice Timeout is not longer than that. If Tools is set, tools/list is a phase too.
//
// A try that fails is closed before the next begins, so no two servers run at once, unless open exceeds the limit: what
// it returns later is closed then. To close a command takes mcp-go up to 8 s. Connect does not try again if the
// caller's context has ended, if the command is not found or may not be executed, if authorization is required, or if
// the server speaks another transport. It gives up after the last try, unless Failed says otherwise.
//
// The end of ctx after Connect has returned does not affect the client. The error is that of the last try or, if ctx
// ends between two tries, a [*request.Error] that matches context.Canceled or context.DeadlineExceeded. If a phase
// timed out, the error is as described at [Limit].
func Connect(ctx context.Context, open func() (*client.Client, error), req mcp.InitializeRequest, opts *ConnectOptions) (*client.Client, *mcp.InitializeResult, error) {
	var o ConnectOptions
	if opts != nil {
		o = *opts
	}
	if o.Timeout == 0 {
		o.Timeout = connectTimeout
	}
	o.Timeout = max(o.Timeout, 0)
	c, err := request.Retry(ctx, standing, func(err error) bool { return o.Failed != nil && o.Failed(err) }, func() (connected, error) {
		c, err := request.Retry(ctx, o.Backoff, worthwhile, func() (made connected, err error) {
			c, err := opened(ctx, o.Timeout, open)
			if err != nil {
				return connected{}, err
			}
			defer func() {
				if made.client == nil { // try has failed or panicked
					disconnect(c)
				}
			}()
			result, tools, err := try(ctx, c, req, o)
			if err != nil {
				return connected{}, err
			}
			return connected{c, result, tools}, nil
		})
		if err == nil && o.Tools != nil {
			if err = show(ctx, c, o); err != nil {
				c = connected{}
			}
		}
		return c, asTimeout(err)
	})
	return c.client, c.result, asTimeout(err)
}

// show calls Tools with the listed tools. It closes the client if Tools panics or does not return in time.
func show(ctx context.Context, c connected, o ConnectOptions) (err error) {
	shown := false
	defer func() {
		if !shown {
			disconnect(c.client)
		}
	}()
	_, err = phase(ctx, "Tools", o.Timeout, func(context.Context) (none struct{}, _ error) { o.Tools(c.tools); return })
	shown = err == nil
	return err
}

// opened calls open as a phase. If open returns a client after the limit, opened closes that client, because it may
// have started a command.
func opened(ctx context.Context, limit time.Duration, open func() (*client.Client, error)) (*client.Client, error) {
	var mu sync.Mutex
	var made *client.Client
	late := false
	c, err := phase(ctx, "open", limit, func(context.Context) (*client.Client, error) {
		c, err := open()
		mu.Lock()
		made = c
		gone := late
		mu.Unlock()
		if gone && err == nil {
			_ = c.Close()
		}
		return c, err
	})
	var stop *timeout.Error
	if errors.As(err, &stop) {
		mu.Lock()
		late = true
		unwanted := made
		mu.Unlock()
		if unwanted != nil {
			disconnect(unwanted)
		}
		return nil, err
	}
	return c, err
}

// closeWait is how long a client may take to close. For a command mcp-go needs up to 8 s.
const closeWait = 20 * time.Second

func disconnect(c *client.Client) {
	_ = timeout.Run(context.Background(), func(context.Context) error { return c.Close() }, timeout.Config{Total: closeWait, Grace: -1},
		timeout.WithName("disconnect"), timeout.WithOperation(timeout.OperationRequest), timeout.WithRecover())
}

// connected is the result of a try. The zero value is the result of a try that failed.
type connected struct {
	client *client.Client
	result *mcp.InitializeResult
	tools  []mcp.Tool
}

func worthwhile(err error) bool {
	for _, final := range []error{transport.ErrLegacySSEServer, transport.ErrAuthorizationRequired, transport.ErrOAuthAuthorizationRequired} {
		if errors.Is(err, final) {
			return false
		}
	}
	return !request.Permanent(err)
}

// phaseGrace is how long a transport may take to return after the context of a phase has ended. Some transports
// ignore their contexts.
const phaseGrace = 250 * time.Millisecond

func try(ctx context.Context, c *client.Client, req mcp.InitializeRequest, o ConnectOptions) (*mcp.InitializeResult, []mcp.Tool, error) {
	limit := o.Timeout
	// The connection lives as long as the context of Start: over SSE and with a command, that context
	// must not end with the phase, unless the phase fails.
	alive, end := context.WithCancelCause(context.WithoutCancel(ctx))
	_, err := phase(ctx, "transport", limit, func(limited context.Context) (struct{}, error) {
		unhook := context.AfterFunc(limited, func() { end(context.Cause(limited)) })
		defer unhook()
		return struct{}{}, c.Start(alive)
	})
	if err != nil {
		end(err)
		return nil, nil, err
	}
	result, err := phase(request.WithLimits(ctx, request.Limits{Timeout: limit}), "handshake", 2*limit, func(ctx context.Context) (*mcp.InitializeResult, error) {
		return c.Initialize(ctx, req)
	})
	if err != nil {
		end(err)
		return nil, nil, err
	}
	if o.Tools == nil || result.Capabilities.Tools == nil {
		return result, nil, nil
	}
	tools, err := list(ctx, c, limit)
	if err != nil {
		end(err)
		return nil, nil, err
	}
	return result, tools, nil
}

// list returns the tools of a server. It requests each page as a phase.
func list(ctx context.Context, c *client.Client, limit time.Duration) (tools []mcp.Tool, _ error) {
	var req mcp.ListToolsRequest
	for range maxPages {
		page, err := phase(request.WithLimits(ctx, request.Limits{}), string(mcp.MethodToolsList), limit, func(ctx context.Context) (*mcp.ListToolsResult, error) {
			return c.ListToolsByPage(ctx, req)
		})
		if err != nil {
			return nil, err
		}
		tools = append(tools, page.Tools...)
		if req.Params.Cursor = page.NextCursor; req.Params.Cursor == "" {
			return tools, nil
		}
	}
	return nil, fmt.Errorf("connecting: the server lists its tools on more than %d pages", maxPages)
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

// standing sets when Connect tries again after Failed has returned true (SPEC 8.7).
var standing = request.Backoff{Retries: math.MaxInt, First: 30 * time.Second, Max: 30 * time.Second}

// connectTimeout is the default limit of each phase of connecting.
const connectTimeout = 5 * time.Second

// maxPages is the largest number of pages of a list that a client reads.
const maxPages = 100
