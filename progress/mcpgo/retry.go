package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/internal/request"
)

// A Backoff says how often to try again, and when. The zero Backoff is three times, after
// 2 s, 4 s and 8 s (SPEC 8.5).
type Backoff struct {
	// Retries is how often to try again after the first try has failed; 0 is 3 times,
	// less is not at all.
	Retries int
	// First is how long to wait before the first of them; 0 or less is 2 s. Each further
	// wait is twice as long, up to the longer of First and 1 min.
	First time.Duration
}

// Retry sends requests again that timed out, if their method is one of methods, or matches
// one that is a prefix with a star (SPEC 8.5). It is for requests that only read, such as
// "tools/list" and "resources/*". A tools/call is never sent again, whatever methods says,
// and nor is a request of the handshake, for which see [Connect], or a stream.
//
// It goes around [Limit]; then each try has the limits of the request:
//
//	t = mcpgo.Retry(mcpgo.Limit(t, defaults, perMethod), mcpgo.Backoff{}, "tools/list", "resources/*")
//
// Any other error is final. The error is that of the last try, or the caller's if it gave up
// in between.
func Retry(t transport.Interface, b Backoff, methods ...string) transport.Interface {
	return complete(&retrier{passing{t}, b, request.Methods(methods...)}, t, nil)
}

type retrier struct {
	passing
	backoff Backoff
	match   func(method string) bool
}

func (r *retrier) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	switch mcp.MCPMethod(req.Method) {
	case mcp.MethodToolsCall, mcp.MethodInitialize, mcp.MethodServerDiscover, mcp.MethodSubscriptionsListen:
		return r.Interface.SendRequest(ctx, req)
	}
	if !r.match(req.Method) {
		return r.Interface.SendRequest(ctx, req)
	}
	id, try := req.ID, 0
	return retry(ctx, r.backoff, timedOut, func() (*transport.JSONRPCResponse, error) {
		if try++; try > 1 {
			// The server has been told to cancel the one before, by its id.
			req.ID = mcp.NewRequestId(fmt.Sprintf("%v-try-%d", id.Value(), try))
		}
		return r.Interface.SendRequest(ctx, req)
	})
}

func timedOut(err error) bool {
	var stop *RequestTimeout
	return errors.As(err, &stop)
}

// retry calls do until it succeeds, gives an error that is final, or the context or the
// patience is over.
func retry[T any](ctx context.Context, b Backoff, again func(error) bool, do func() (T, error)) (T, error) {
	if b.Retries == 0 {
		b.Retries = 3
	}
	if b.First <= 0 {
		b.First = 2 * time.Second
	}
	waits := &backoff.ExponentialBackOff{InitialInterval: b.First, Multiplier: 2, MaxInterval: max(b.First, time.Minute)}
	var last error
	waiting := false
	value, err := backoff.Retry(ctx, func() (T, error) {
		var value T
		value, last = do()
		waiting = last != nil && ctx.Err() == nil && again(last)
		if last != nil && !waiting {
			return value, backoff.Permanent(last)
		}
		return value, last
	}, backoff.WithBackOff(waits), backoff.WithMaxTries(uint(max(b.Retries, 0))+1), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return value, nil
	case waiting && ctx.Err() != nil:
		return value, fmt.Errorf("%w, before trying again after: %w", context.Cause(ctx), last)
	}
	return value, last // without what marks it as final
}
