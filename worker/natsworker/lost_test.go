package natsworker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Guarantee 2: a worker that has lost its connection stops what it does before another
// worker begins.
func TestLostConnectionStopsTheWork(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 15 * time.Second }) // a busy machine must not take the sixth in which the work stops
	heard := b.advisories()
	b.publish(1)
	p := newProxy(t, b.server)
	c, nc := b.consumer(p.url())
	stopped := make(chan time.Time, 1)
	work := func(ctx context.Context, m jetstream.Msg) error {
		if delivery(m) > 1 {
			return nil // the worker's that is lost, if the other's is not in time
		}
		p.lose()
		<-ctx.Done()
		stopped <- time.Now()
		if !errors.Is(context.Cause(ctx), natsworker.ErrLeaseLost) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		return context.Cause(ctx)
	}
	cc, err := c.Consume(natsworker.Handler(c, work, noLimits, natsworker.WithConn(nc)), jetstream.PullMaxMessages(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cc.Stop(); <-cc.Closed() }()

	eventually(t, slack, func() bool { _, pending := b.state(); return pending == 1 }, func() string { return "not delivered" })
	other, _ := b.consumer(b.server.ClientURL())
	m, err := other.Next(jetstream.FetchMaxWait(2 * slack))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.find()
	if at := <-stopped; at.After(began) {
		t.Errorf("it was stopped %v after the other had begun", at.Sub(began))
	}
	eventually(t, slack, nc.IsConnected, func() string { return "not connected again" })
	if err := nc.FlushTimeout(slack); err != nil {
		t.Error(err)
	}
	if n := delivery(m); n != 2 {
		t.Errorf("delivery %d", n)
	}
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Error(err)
	}
	if got := heard("MSG_NAKED"); len(got) != 0 {
		t.Errorf("said after it was lost: %v", got)
	}
}

// Guarantee 2: what could not be said in time is not said later, when it would be about the
// delivery of somebody else.
func TestVerdictIsNotSaidLate(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{"done": nil, "failed": errBroken, "rejected": natsworker.Reject(errBroken)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testVerdictIsNotSaidLate(t, result)
		})
	}
}

func testVerdictIsNotSaidLate(t *testing.T, result error) {
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 15 * time.Second })
	heard := b.advisories()
	b.publish(1)
	p := newProxy(t, b.server)
	c, nc := b.consumer(p.url())
	failed := make(chan struct{})
	cc, err := c.Consume(func(m jetstream.Msg) {
		defer close(failed)
		natsworker.Handler(c, func(context.Context, jetstream.Msg) error {
			p.lose()
			for nc.IsConnected() {
				time.Sleep(time.Millisecond)
			}
			return result
		}, natsworker.WithConn(nc), natsworker.WithBackoff(-1, -1))(m)
	}, jetstream.StopAfter(1), jetstream.PullMaxMessages(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cc.Stop(); <-cc.Closed() }()
	<-failed

	other, _ := b.consumer(b.server.ClientURL())
	m, err := other.Next(jetstream.FetchMaxWait(2 * slack))
	if err != nil {
		t.Fatal(err)
	}
	p.find()
	eventually(t, slack, nc.IsConnected, func() string { return "not connected again" })
	if err := nc.FlushTimeout(slack); err != nil {
		t.Error(err)
	}
	if third, err := other.Next(jetstream.FetchMaxWait(time.Second)); err == nil {
		t.Errorf("delivery %d while the other is at work", delivery(third))
	}
	if left, pending := b.state(); left != 1 || pending != 1 {
		t.Errorf("%d messages left, %d unacknowledged, while the other is at work", left, pending)
	}
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Error(err)
	}
	if got := heard("MSG_NAKED"); len(got) != 0 {
		t.Errorf("said after it was lost: %v", got)
	}
}

// A loss that is shorter than the lease is no reason to stop, nor to do something twice.
func TestConnectionComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 15 * time.Second })
	b.publish(1)
	p := newProxy(t, b.server)
	c, nc := b.consumer(p.url())
	var runs atomic.Int32
	cc, err := c.Consume(natsworker.Handler(c, func(ctx context.Context, _ jetstream.Msg) error {
		runs.Add(1)
		time.Sleep(3500 * time.Millisecond)
		p.lose() // over the renewal at 5 s
		time.Sleep(3500 * time.Millisecond)
		p.find()
		select {
		case <-ctx.Done():
			t.Errorf("stopped: %v", context.Cause(ctx))
		case <-time.After(10 * time.Second): // beyond the first lease
		}
		p.lose() // over the ack
		time.AfterFunc(time.Second, p.find)
		return nil
	}, natsworker.WithConn(nc), natsworker.WithOptions(timeout.Config{Total: time.Minute})), jetstream.PullMaxMessages(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cc.Stop(); <-cc.Closed() }()
	b.empty()
	if n := runs.Load(); n != 1 {
		t.Errorf("%d executions", n)
	}
}

// A restart of the server that takes less than three fifths of AckWait costs no work, whenever
// the last renewal was: the messages are renewed at different times.
func TestRestartOfTheServer(t *testing.T) {
	t.Parallel()
	const ackWait, messages = 15 * time.Second, 12
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = ackWait })
		logger := slog.New(slog.NewTextHandler(t.Output(), nil)) // seen where the test fails
		var runs atomic.Int32
		restarted := make(chan struct{})
		b.run(b.server.ClientURL(), messages, func(ctx context.Context, m jetstream.Msg) error {
			logger.Info("begun", "subject", m.Subject(), "delivery", delivery(m))
			runs.Add(1)
			select {
			case <-ctx.Done():
				t.Errorf("%s was stopped: %v", m.Subject(), context.Cause(ctx))
			case <-restarted:
			}
			return nil
		}, conn, noLimits, natsworker.WithLogger(logger))
		for range messages {
			b.publish(1)
			time.Sleep(ackWait / 3 / messages)
		}
		// All have been renewed, the first of them three times.
		time.Sleep(ackWait / 6)
		begun := time.Now()
		b.restart(ackWait * 9 / 20) // one renewal of each fails, and the next is in time on a busy machine, too
		eventually(t, slack, func() bool {
			_, err := b.js.Stream(t.Context(), streamName)
			return err == nil
		}, func() string { return "the server does not answer" })
		logger.Info("restarted", "after", time.Since(begun))
		time.Sleep(ackWait / 2) // what is redelivered would be now
		close(restarted)
		b.empty()
		if n := runs.Load(); n != messages {
			t.Errorf("%d executions of %d messages", n, messages)
		}
	})
}

// A function's own acknowledgement is refused while the connection is lost, unless it is the ack,
// which stays true: nats.go would send it later, when it may be about the delivery of somebody
// else.
func TestFunctionSettlesWithoutAConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute })
	heard := b.advisories()
	b.publish(1)
	p := newProxy(t, b.server)
	c, nc := b.consumer(p.url())
	m, err := c.Next(jetstream.FetchMaxWait(slack))
	if err != nil {
		t.Fatal(err)
	}
	natsworker.Handler(c, func(_ context.Context, m jetstream.Msg) error {
		p.lose()
		eventually(t, slack, func() bool { return !nc.IsConnected() }, func() string { return "still connected" })
		for i, err := range []error{m.Nak(), m.NakWithDelay(time.Second), m.Term(), m.TermWithReason("no")} {
			if !errors.Is(err, nats.ErrDisconnected) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if err := m.Ack(); err != nil {
			t.Error(err)
		}
		p.find()
		return nil
	}, natsworker.WithConn(nc), noLimits)(m)
	b.empty()
	if got := append(heard("MSG_NAKED"), heard("MSG_TERMINATED")...); len(got) != 0 {
		t.Errorf("sent: %v", got)
	}
}

// A connection that is closed does not come back, and is not waited for.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{"done": nil, "failed": errBroken} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 5 * time.Minute })
			b.publish(1)
			c, nc := b.consumer(b.server.ClientURL())
			m, err := c.Next(jetstream.FetchMaxWait(slack))
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			natsworker.Handler(c, func(context.Context, jetstream.Msg) error {
				nc.Close()
				return result
			}, natsworker.WithConn(nc))(m)
			if took := time.Since(begun); took > slack {
				t.Errorf("took %v", took)
			}
		})
	}
}
