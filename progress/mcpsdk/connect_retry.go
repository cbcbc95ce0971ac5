package mcpsdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// Retry makes c send requests again that timed out, or that the transport could not
// deliver, if their method is one of methods, or matches one that is a prefix with a
// star (SPEC 8.5). It is for requests that only read, such as "tools/list" and
// "resources/*". A tools/call is never sent again, whatever methods says, and nor is a
// request of the handshake, for which see [Connect], or a stream.
//
// Call it after [Limit]; then each try has the limits of the request. An error that the
// server answered with is final, and so is the loss of the connection. The error is that
// of the last try, or the caller's if it gave up in between.
func Retry(c *mcp.Client, b Backoff, methods ...string) {
	match := request.Methods(methods...)
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "tools/call", "initialize", "server/discover", "subscriptions/listen":
				return next(ctx, method, req)
			}
			if !match(method) {
				return next(ctx, method, req)
			}
			return retry(ctx, b, transient, func() (mcp.Result, error) { return next(ctx, method, req) })
		}
	})
}

// codeRejected is how the SDK marks a request that the transport could not deliver
// without harm to the connection. It does not export it.
const codeRejected = -32005

func transient(err error) bool {
	if stop := (*requestTimeout)(nil); errors.As(err, &stop) {
		return true
	}
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code == codeRejected
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
	value, _ := backoff.Retry(ctx, func() (T, error) {
		var value T
		value, last = do()
		waiting = last != nil && ctx.Err() == nil && again(last)
		if last != nil && !waiting {
			return value, backoff.Permanent(last)
		}
		return value, last
	}, backoff.WithBackOff(waits), backoff.WithMaxTries(uint(max(b.Retries, 0))+1), backoff.WithMaxElapsedTime(0))
	if waiting && ctx.Err() != nil {
		stop := ctx.Err()
		if cause := context.Cause(ctx); cause != stop {
			stop = fmt.Errorf("%w: %w", stop, cause)
		}
		return value, fmt.Errorf("%w, before trying again after: %v", stop, last)
	}
	return value, last // err may be marked as final
}
