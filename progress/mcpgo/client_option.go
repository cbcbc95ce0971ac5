package mcpgo

import (
	"context"

	"github.com/tooldeadline/tooldeadline/progress/request"
)

// ClientLimits bound one request of a client.
type ClientLimits = request.Limits

// ClientOptions are the settings of [Limit].
type ClientOptions = request.Options

// WithLimits returns a context whose next request has the limits l, in place of those that [Limit] has for it. It has no
// effect on a client without Limit.
func WithLimits(ctx context.Context, l ClientLimits) context.Context {
	return request.WithLimits(ctx, l)
}
