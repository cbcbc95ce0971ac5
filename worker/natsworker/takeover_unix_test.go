//go:build unix

package natsworker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// When the second worker begins with a message of which the first can make nothing, from its
// last sign of life on: the median, in milliseconds.
func BenchmarkTakeover(b *testing.B) {
	for _, c := range []struct {
		name    string
		ackWait time.Duration
		limits  timeout.Config
		work    func(context.Context, jetstream.Msg) error
	}{
		{"stalled/idle=500ms,ackwait=30s", 30 * time.Second, timeout.Config{Idle: 500 * time.Millisecond}, hangs(nil)},
		{"deaf/idle=500ms,grace=300ms,ackwait=30s", 30 * time.Second,
			timeout.Config{Idle: 500 * time.Millisecond, Grace: 300 * time.Millisecond},
			func(context.Context, jetstream.Msg) error { time.Sleep(2 * time.Second); return nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newBench(b, func(cc *jetstream.ConsumerConfig) { cc.AckWait = c.ackWait })
			begun, again := make(chan time.Time, 1), make(chan time.Time, 1)
			for range 2 {
				c2, nc := f.consumer(f)
				go natsworker.Run(b.Context(), c2, 1, func(ctx context.Context, m jetstream.Msg) error {
					if delivery(m) == 1 {
						begun <- time.Now()
						return c.work(ctx, m)
					}
					again <- time.Now()
					return nil
				}, natsworker.Options{Limits: &c.limits, Conn: nc})
			}
			takeovers(b, f, func() time.Duration { first := <-begun; return (<-again).Sub(first) })
		})
	}
	b.Run("killed/ackwait=2s", func(b *testing.B) {
		f := newBench(b, func(cc *jetstream.ConsumerConfig) { cc.AckWait = 2 * time.Second })
		c, _ := f.consumer(f)
		takeovers(b, f, func() time.Duration {
			cmd := startChild(b, "worker", f.server.Load().ClientURL(), "hang")
			cmd.line(b)
			time.Sleep(time.Second) // some renewals
			killed := time.Now()
			cmd.kill()
			m, err := c.Next(jetstream.FetchMaxWait(2 * time.Minute))
			if err != nil {
				b.Fatal(err)
			}
			took := time.Since(killed)
			if err := m.DoubleAck(context.Background()); err != nil {
				b.Fatal(err)
			}
			return took
		})
	})
}

func takeovers(b *testing.B, f *bench, one func() time.Duration) {
	var took []time.Duration
	for range b.N {
		f.publish(1)
		took = append(took, one())
		f.empty()
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-most")
}
