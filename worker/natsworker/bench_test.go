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

var benchLimits = timeout.Config{Total: time.Hour, Idle: time.Minute}

// A message by itself: its request, its delivery, a function that does nothing, and the ack
// with its answer. The bare handler and ours take turns, so that both meet the same noise;
// the figures are medians, and "ratio" is that of ours to the bare one's.
func BenchmarkHandler(b *testing.B) {
	f := newBench(b, nil)
	c, nc := f.consumer(f)
	ours := handler(c, fails(nil), natsworker.Options{Limits: &benchLimits, Conn: nc})
	bare := func(m jetstream.Msg) {
		if err := m.DoubleAck(context.Background()); err != nil {
			b.Error(err)
		}
	}
	var took [2][]time.Duration
	n, last := 0, time.Time{}
	turn := func(m jetstream.Msg) {
		if n%2 == 0 {
			bare(m)
		} else {
			ours(m)
		}
		// The time since the one before had ended includes the request and the delivery.
		now := time.Now()
		if !last.IsZero() {
			took[n%2] = append(took[n%2], now.Sub(last))
		}
		last = now
		n++
	}
	fill(f, 2*b.N+2)
	b.ResetTimer()
	cc, err := c.Consume(turn, jetstream.PullMaxMessages(1), jetstream.StopAfter(2*b.N+2))
	if err != nil {
		b.Fatal(err)
	}
	<-cc.Closed()
	report(b, took)
}

// The same for Run, against a loop of Next and DoubleAck.
func BenchmarkRun(b *testing.B) {
	f := newBench(b, nil)
	c, nc := f.consumer(f)
	var took [2][]time.Duration
	const turn = 100 // in a row, since Run has to be started
	for len(took[1]) < b.N {
		fill(f, 2*turn)
		last := time.Now()
		lap := func(of int) {
			now := time.Now()
			took[of] = append(took[of], now.Sub(last))
			last = now
		}
		for range turn {
			m, err := c.Next()
			if err != nil {
				b.Fatal(err)
			}
			if err := m.DoubleAck(context.Background()); err != nil {
				b.Fatal(err)
			}
			lap(0)
		}
		ctx, stop := context.WithCancel(context.Background())
		n := 0
		last = time.Now()
		if err := natsworker.Run(ctx, c, 1, func(context.Context, jetstream.Msg) error {
			if n > 0 {
				lap(1) // from one call to the next is a round too
			}
			if n++; n == turn {
				stop()
			}
			last = time.Now()
			return nil
		}, natsworker.Options{Limits: &benchLimits, Conn: nc, Drain: time.Hour}); err != nil {
			b.Fatal(err)
		}
	}
	report(b, took)
}

func fill(f *bench, n int) {
	for range n {
		if _, err := f.js.PublishAsync("jobs.1", nil); err != nil {
			f.Fatal(err)
		}
	}
	<-f.js.PublishAsyncComplete()
}

func report(b *testing.B, took [2][]time.Duration) {
	var of [2]float64
	for i := range took {
		slices.Sort(took[i])
		of[i] = float64(took[i][len(took[i])/2])
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(of[0], "bare-ns")
	b.ReportMetric(of[1], "ours-ns")
	b.ReportMetric(of[1]/of[0], "ratio")
}
