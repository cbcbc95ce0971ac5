package pulse

import (
	"context"
	"slices"
	"time"
)

// ClientRelay is [Cell.Relay] for deliveries to the client that waits for the answer. Such a relay delivers nothing on
// account of a hold, and nothing new at its end. While it is active, [Heard] is true.
func (c *Cell) ClientRelay(ctx context.Context, every time.Duration, deliver func(ctx context.Context, detail any)) *Relay {
	return c.relay(&Relay{cell: c, every: every, deliver: deliver, client: true}, ctx)
}

type heardKey struct{}

// Listened returns a context for which [Heard] is true. It is for a call whose client does not wait for the
// answer, but follows the call in another way.
func Listened(ctx context.Context) context.Context { return context.WithValue(ctx, heardKey{}, true) }

// Heard reports whether the client of a call is informed about the call while it runs: ctx comes from Listened, or its
// cell or an enclosing one has a ClientRelay.
func Heard(ctx context.Context) bool {
	if ctx.Value(heardKey{}) != nil {
		return true
	}
	for c := Of(ctx); c != nil; c = c.parent {
		if slices.ContainsFunc(c.active(), func(r *Relay) bool { return r.client }) {
			return true
		}
	}
	return false
}
