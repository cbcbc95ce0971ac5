package natsworker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Guarantee 2: of a message that is late, because the server or the network was slow, the time on
// its way counts. Two functions are not at work on it: the first delivery is renewed at once, or
// not begun. It was relied upon for five sixths of AckWait after it had arrived.
func TestLateDelivery(t *testing.T) {
	t.Parallel()
	const ackWait = 13 * time.Second // a busy machine must not take the sixth in which a function stops
	for name, late := range map[string]time.Duration{
		"in time to be renewed":       ackWait / 2,
		"just before another has it":  ackWait * 3 / 4,
		"when another may be at work": ackWait * 5 / 4,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
				b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = ackWait })
				p := newProxy(t, b.server)
				logger := slog.New(slog.NewTextHandler(t.Output(), nil)) // seen where the test fails
				var mu sync.Mutex
				working := 0
				work := func(ctx context.Context, m jetstream.Msg) error {
					mu.Lock()
					working++
					if working > 1 {
						t.Errorf("delivery %d begins beside another", delivery(m))
					}
					mu.Unlock()
					defer func() {
						mu.Lock()
						defer mu.Unlock()
						working--
					}()
					select {
					case <-ctx.Done():
						if !errors.Is(context.Cause(ctx), natsworker.ErrLeaseLost) {
							t.Error(context.Cause(ctx))
						}
						return ctx.Err()
					case <-time.After(ackWait):
						return nil
					}
				}
				b.run(p.url(), 1, work, conn, noLimits, natsworker.WithLogger(logger))
				// The message is delivered to the first, whose answers stay in the network.
				eventually(t, slack, func() bool { return b.waiting() == 1 }, func() string { return "no pull request" })
				p.hold()
				b.publish(1)
				time.AfterFunc(late, p.release)
				eventually(t, slack, func() bool { _, pending := b.state(); return pending == 1 }, func() string { return "not delivered" })
				b.run(b.server.ClientURL(), 1, work, conn, noLimits, natsworker.WithLogger(logger))
				b.empty()
			})
		})
	}
}
