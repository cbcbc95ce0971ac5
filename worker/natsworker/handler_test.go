package natsworker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// bothWays runs a test with acknowledgements that are published and with some that are
// requests.
func bothWays(t *testing.T, test func(t *testing.T, conn func(*nats.Conn) natsworker.Option)) {
	for name, conn := range map[string]func(*nats.Conn) natsworker.Option{
		"published": func(*nats.Conn) natsworker.Option { return nil },
		"requested": natsworker.WithConn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, conn)
		})
	}
}

// Guarantee 3, as the server takes it.
func TestOutcomeReachesTheServer(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		const delay, later = 300 * time.Millisecond, 1500 * time.Millisecond
		b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute; c.MaxDeliver = 3 })
		heard := b.advisories()
		b.publish(6)

		var mu sync.Mutex
		seen := map[string][]time.Time{} // by subject, when each delivery began
		work := func(ctx context.Context, m jetstream.Msg) error {
			mu.Lock()
			seen[m.Subject()] = append(seen[m.Subject()], time.Now())
			mu.Unlock()
			switch n := delivery(m); m.Subject() {
			case "jobs.1":
				return nil
			case "jobs.2":
				return natsworker.Reject(errors.New("no such file"))
			case "jobs.3":
				if n == 1 {
					<-ctx.Done()
				}
				return ctx.Err()
			case "jobs.4":
				if n == 1 {
					return errBroken
				}
			case "jobs.5":
				panic("poison")
			case "jobs.6":
				if n == 1 {
					return natsworker.After(later, nil)
				}
			}
			return nil
		}
		c, nc := b.consumer(b.server.ClientURL())
		for range 3 {
			cc, err := c.Consume(natsworker.Handler(c, work, conn(nc), natsworker.WithOptions(timeout.Config{Idle: time.Second}),
				natsworker.WithBackoff(delay, delay)), jetstream.PullMaxMessages(1))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { cc.Stop(); <-cc.Closed() }()
		}
		b.empty()

		mu.Lock()
		defer mu.Unlock()
		for subject, want := range map[string]struct {
			deliveries int
			apart      time.Duration // at the least, the first two
		}{
			"jobs.1": {1, 0}, "jobs.2": {1, 0}, "jobs.3": {2, time.Second / 2},
			"jobs.4": {2, delay}, "jobs.5": {3, delay}, "jobs.6": {2, later},
		} {
			got := seen[subject]
			if len(got) != want.deliveries {
				t.Errorf("%s: %d deliveries, want %d", subject, len(got), want.deliveries)
			} else if len(got) > 1 && (got[1].Sub(got[0]) < want.apart || got[1].Sub(got[0]) > want.apart+slack) {
				t.Errorf("%s: again after %v, want %v", subject, got[1].Sub(got[0]), want.apart)
			}
		}
		reasons := func() string {
			var s []string
			for _, a := range heard("MSG_TERMINATED") {
				s = append(s, fmt.Sprintf("%d/%d %s", a.Sequence, a.Deliveries, a.Reason))
			}
			return strings.Join(s, "\n")
		}
		const want = "2/1 no such file\n5/3 delivery 3 of 3: panic: poison"
		eventually(t, slack, func() bool { return len(heard("MSG_TERMINATED")) == 2 }, reasons)
		if reasons() != want {
			t.Errorf("got\n%s\nwant\n%s", reasons(), want)
		}
		if n := len(heard("MSG_NAKED")); n != 5 {
			t.Errorf("%d naks, want 5", n)
		}
		if got := heard("MAX_DELIVERIES"); len(got) != 0 {
			t.Errorf("left in the stream: %v", got)
		}
	})
}

// Guarantees 1 and 5: while it works within its limits, however silent, a message is not
// delivered again; when it is stuck, another worker has it at the idle limit and not before.
func TestStalledMessageGoesToAnother(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		const wait = 6 * time.Second // a busy machine must not lose the lease
		const idle = 2 * wait
		b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = wait })
		b.publish(1)
		type turn struct {
			begun, ended time.Time
			why          error
		}
		turns := make(chan turn, 10)
		work := func(ctx context.Context, m jetstream.Msg) error {
			begun := time.Now()
			if delivery(m) == 1 {
				<-ctx.Done()
			}
			turns <- turn{begun, time.Now(), context.Cause(ctx)}
			return ctx.Err()
		}
		for range 2 {
			c, nc := b.consumer(b.server.ClientURL())
			cc, err := c.Consume(natsworker.Handler(c, work, conn(nc), natsworker.WithOptions(timeout.Config{Idle: idle})), jetstream.PullMaxMessages(1))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { cc.Stop(); <-cc.Closed() }()
		}
		b.empty()
		first, second := <-turns, <-turns
		if len(turns) > 0 {
			t.Errorf("%d deliveries too many", len(turns))
		}
		// The execution has begun a little before its function.
		if got := first.ended.Sub(first.begun); got < idle/2 {
			t.Errorf("the first was stopped after %v: %v", got, first.why)
		}
		if second.begun.Before(first.ended) {
			t.Errorf("the second began %v before the first was stopped", first.ended.Sub(second.begun))
		}
		if got := second.begun.Sub(first.begun); got > idle+slack {
			t.Errorf("the second began after %v", got)
		}
	})
}

// The log has a line for each message that was not simply done.
func TestLog(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute; c.MaxDeliver = 2 })
	b.publish(5)
	log := new(buffer)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	c, nc := b.consumer(b.server.ClientURL())
	cc, err := c.Consume(natsworker.Handler(c, func(ctx context.Context, m jetstream.Msg) error {
		switch {
		case m.Subject() == "jobs.1":
			return errBroken
		case m.Subject() == "jobs.2":
			return natsworker.Reject(errors.New("nonsense"))
		case m.Subject() == "jobs.3" && delivery(m) == 1:
			panic("oh")
		case m.Subject() == "jobs.4" && delivery(m) == 1:
			<-ctx.Done()
		case m.Subject() == "jobs.5":
			m.Ack()
			return errBroken
		}
		return nil
	}, natsworker.WithConn(nc), natsworker.WithLogger(logger), natsworker.WithBackoff(-1, -1), natsworker.WithOptions(timeout.Config{Idle: time.Second})),
		jetstream.PullMaxMessages(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cc.Stop(); <-cc.Closed() }()
	b.empty()
	of := func(n, delivery int) string {
		return fmt.Sprintf(" stream=JOBS consumer=workers subject=jobs.%d sequence=%d delivery=%d ", n, n, delivery)
	}
	for _, want := range []string{
		`level=WARN msg="given back"` + of(1, 1) + `delay=0s error=broken`,
		`level=WARN msg=terminated` + of(1, 2) + `reason="delivery 2 of 2: broken"`,
		`level=WARN msg=terminated` + of(2, 1) + `reason=nonsense`,
		`msg="tool panicked" tool=workers error="panic: oh" stack="goroutine`, // by timeout.Run
		`level=WARN msg="given back"` + of(3, 1) + `delay=0s error="panic: oh`,
		`level=WARN msg="given back"` + of(4, 1) + `delay=0s error="No progress for 1s`,
		`msg="tool timed out" tool=workers`, // by timeout.Run
		`level=WARN msg="the function failed after acknowledging the message itself"` + of(5, 1) + `error=broken`,
	} {
		if eventually(t, slack, func() bool { return strings.Contains(log.String(), want) },
			func() string { return fmt.Sprintf("no line with\n%s\nin\n%s", want, log.String()) }); t.Failed() {
			return
		}
	}
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
