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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/internal/simnet"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// A diary notes what happens, with the time since its beginning.
type diary struct {
	begun time.Time
	mu    sync.Mutex
	lines []string
}

func newDiary() *diary { return &diary{begun: time.Now()} }

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%v ", time.Since(d.begun))+fmt.Sprintf(format, args...))
}

func (d *diary) want(t testing.TB, lines ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(lines, d.lines); diff != "" {
		t.Error(diff)
	}
}

func ackWait(d time.Duration) func(*jetstream.ConsumerConfig) {
	return func(c *jetstream.ConsumerConfig) { c.AckWait = d }
}

// Guarantee 3, as the server takes it.
func TestOutcomeReachesTheServer(t *testing.T) {
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		inBubble(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 3 }, func(b *bench) {
			heard := b.advisories()
			var mu sync.Mutex
			begun, seen := time.Now(), map[string][]time.Duration{} // by subject, when each delivery began
			c, nc := b.consumer(b.link(nil))
			b.handle(c, natsworker.Handler(c, func(ctx context.Context, m jetstream.Msg) error {
				mu.Lock()
				seen[m.Subject()] = append(seen[m.Subject()], time.Since(begun))
				mu.Unlock()
				first := delivery(m) == 1
				switch {
				case m.Subject() == "jobs.2":
					return natsworker.Reject(errors.New("no such file"))
				case m.Subject() == "jobs.3" && first:
					<-ctx.Done()
				case m.Subject() == "jobs.4" && first:
					return errBroken
				case m.Subject() == "jobs.5":
					panic("poison")
				case m.Subject() == "jobs.6" && first:
					return natsworker.After(time.Minute, nil)
				}
				return nil
			}, conn(nc), natsworker.WithOptions(timeout.Config{Idle: 10 * time.Second}), natsworker.WithBackoff(5*time.Second, time.Minute)))
			for range 6 {
				b.publish(1)
				b.empty()
			}
			mu.Lock()
			defer mu.Unlock()
			const ms = time.Millisecond // the server's timers
			for subject, want := range map[string][]time.Duration{
				"jobs.1": {0}, "jobs.2": {0}, "jobs.3": {0, 10 * time.Second}, "jobs.4": {0, 5 * time.Second},
				"jobs.5": {0, 5 * time.Second, 15 * time.Second}, "jobs.6": {0, time.Minute},
			} {
				got := seen[subject]
				if len(got) != len(want) {
					t.Errorf("%s: begun at %v", subject, got)
					continue
				}
				for i, at := range got {
					if d := at - got[0] - want[i]; d < 0 || d > 2*ms {
						t.Errorf("%s: delivery %d after %v, want %v", subject, i+1, at-got[0], want[i])
					}
				}
			}
			want := []advisory{{2, 1, "no such file"}, {5, 3, "delivery 3 of 3: panic: poison"}}
			if diff := cmp.Diff(want, heard("MSG_TERMINATED")); diff != "" {
				t.Error(diff)
			}
			if n, given := len(heard("MSG_NAKED")), heard("MAX_DELIVERIES"); n != 5 || len(given) != 0 {
				t.Errorf("%d naks, want 5; left in the stream: %v", n, given)
			}
		})
	})
}

// Guarantees 1 and 5: while it works within its limits, however silent, a message is not delivered again; when it is
// stuck, another worker has it at the idle limit and not before.
func TestStalledMessageGoesToAnother(t *testing.T) {
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		inBubble(t, ackWait(6*time.Second), func(b *bench) {
			d := newDiary()
			for range 2 {
				c, nc := b.consumer(b.link(nil))
				b.handle(c, natsworker.Handler(c, func(ctx context.Context, m jetstream.Msg) error {
					d.note("begun %d", delivery(m))
					if delivery(m) == 1 {
						<-ctx.Done()
						d.note("stopped")
					}
					return ctx.Err()
				}, conn(nc), natsworker.WithOptions(timeout.Config{Idle: 2 * time.Minute})))
			}
			b.publish(1)
			b.empty()
			d.want(t, "0s begun 1", "2m0s stopped", "2m0s begun 2")
		})
	})
}

// The log has a line for each message that was not simply done.
func TestLog(t *testing.T) {
	inBubble(t, func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 2 }, func(b *bench) {
		b.publish(5)
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		c, nc := b.consumer(b.link(nil))
		b.handle(c, natsworker.Handler(c, func(ctx context.Context, m jetstream.Msg) error {
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
		}, natsworker.WithConn(nc), natsworker.WithLogger(logger), natsworker.WithBackoff(-1, -1), natsworker.WithOptions(timeout.Config{Idle: time.Second})))
		b.empty()
		synctest.Wait()
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
			if !strings.Contains(log.String(), want) {
				t.Errorf("no line with\n%s\nin\n%s", want, log.String())
			}
		}
	})
}

// Guarantee 2: of a message that is late, because the server or the network was slow, the time on its way counts. Two
// functions are not at work on it: the first delivery is renewed at once, or not begun.
func TestLateDelivery(t *testing.T) {
	const wait = 1200 * time.Millisecond // a longer one is beyond what nats.go waits for
	for name, test := range map[string]struct {
		late  time.Duration
		lines []string
	}{
		"in time to be renewed":      {900 * time.Millisecond, []string{"900ms begun 1", "2.1s done"}},
		"just before another has it": {time.Second - 1, []string{"999.999999ms begun 1", "2.199999999s done"}},
		"when another may have it":   {time.Second, []string{"1.201s begun 2", "2.401s done"}}, // the server's timers are later by 1 ms
		"when another has it":        {3 * time.Second, []string{"1.201s begun 2", "2.401s done"}},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
				inBubble(t, ackWait(wait), func(b *bench) {
					d := newDiary()
					work := func(ctx context.Context, m jetstream.Msg) error {
						d.note("begun %d", delivery(m))
						select {
						case <-ctx.Done():
							d.note("stopped: %v", context.Cause(ctx))
						case <-time.After(wait):
							d.note("done")
						}
						return ctx.Err()
					}
					// The message is delivered to the first, whose answers stay in the network.
					r := b.run(1, work, conn, noLimits)
					synctest.Wait()
					r.link.Hold(simnet.ToClient)
					b.publish(1)
					synctest.Wait()
					b.run(1, work, conn, noLimits)
					time.AfterFunc(test.late, r.link.Release)
					b.empty()
					d.want(t, test.lines...)
				})
			})
		})
	}
}

// Guarantee 2: a worker that has lost its connection stops what it does before another worker begins, and what it has
// not said by then it does not say later, when it would be about the delivery of somebody else.
func TestLostConnection(t *testing.T) {
	for name, result := range map[string]error{"done": nil, "failed": errBroken, "rejected": natsworker.Reject(errBroken)} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deaf %v", name, deaf), func(t *testing.T) {
				inBubble(t, ackWait(12*time.Second), func(b *bench) {
					heard, d := b.advisories(), newDiary()
					b.publish(1)
					l := b.link(nil)
					c, nc := b.consumer(l)
					b.handle(c, natsworker.Handler(c, func(ctx context.Context, m jetstream.Msg) error {
						l.Cut()
						<-ctx.Done()
						d.note("stopped: %v", context.Cause(ctx))
						if deaf {
							time.Sleep(time.Minute)
						}
						return result
					}, noLimits, natsworker.WithConn(nc), natsworker.WithBackoff(-1, -1)), jetstream.StopAfter(1))
					synctest.Wait()
					m := b.next(time.Hour)
					if got := time.Since(d.begun); delivery(m) != 2 || got < 12*time.Second || got > 12*time.Second+5*time.Millisecond {
						t.Errorf("delivery %d after %v", delivery(m), got)
					}
					l.Mend()
					renew := time.NewTicker(time.Second)
					defer renew.Stop()
					for range 120 {
						<-renew.C
						if err := m.InProgress(); err != nil {
							t.Error(err)
						}
					}
					if left, pending := b.state(); left != 1 || pending != 1 || !nc.IsConnected() {
						t.Errorf("%d messages left, %d unacknowledged, while the other is at work", left, pending)
					}
					if err := m.DoubleAck(context.Background()); err != nil {
						t.Error(err)
					}
					if got := append(heard("MSG_NAKED"), heard("MSG_TERMINATED")...); len(got) != 0 {
						t.Errorf("said after it was lost: %v", got)
					}
					d.want(t, "10s stopped: natsworker: lease lost: the message may have been redelivered")
				})
			})
		}
	}
}

// A loss that is shorter than the lease is no reason to stop, nor to do something twice: here over two renewals and
// over the ack.
func TestConnectionComesBack(t *testing.T) {
	inBubble(t, ackWait(12*time.Second), func(b *bench) {
		b.publish(1)
		l := b.link(nil)
		c, nc := b.consumer(l)
		d := newDiary()
		b.handle(c, natsworker.Handler(c, func(ctx context.Context, m jetstream.Msg) error {
			d.note("begun %d", delivery(m))
			time.Sleep(3 * time.Second)
			l.Cut()
			time.Sleep(7 * time.Second)
			l.Mend()
			time.Sleep(time.Minute)
			d.note("alive %v", ctx.Err() == nil)
			l.Cut()
			time.AfterFunc(time.Second, l.Mend)
			return nil
		}, noLimits, natsworker.WithConn(nc)))
		b.empty()
		d.want(t, "0s begun 1", "1m10s alive true")
	})
}

// A restart of the server that takes less than three fifths of AckWait costs no work, whenever the last renewal was: the
// messages are renewed at different times. After one that is longer each is done by another, and no two work at once.
func TestRestartOfTheServer(t *testing.T) {
	const wait, messages = 30 * time.Second, 6
	for name, test := range map[string]struct {
		down  time.Duration
		again bool
	}{"within the bound": {wait*3/5 - 100*time.Millisecond, false}, "longer": {wait, true}} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
				inBubble(t, ackWait(wait), func(b *bench) {
					var mu sync.Mutex
					runs, stopped := 0, 0
					b.run(messages, func(ctx context.Context, m jetstream.Msg) error {
						mu.Lock()
						runs++
						mu.Unlock()
						select {
						case <-ctx.Done():
							mu.Lock()
							defer mu.Unlock()
							stopped++
							if !lost(ctx) {
								t.Error(context.Cause(ctx))
							}
						case <-time.After(3 * wait):
						}
						return ctx.Err()
					}, conn, noLimits)
					for range messages {
						b.publish(1)
						time.Sleep(wait / 6 / messages)
					}
					time.Sleep(wait / 6)
					b.restart(test.down)
					b.empty()
					if again := runs == 2*messages && stopped == messages; again != test.again || !again && (runs != messages || stopped > 0) {
						t.Errorf("%d executions of %d messages, %d stopped", runs, messages, stopped)
					}
				})
			})
		})
	}
}

// A restarted server takes a delivery that was not renewed for one of when the message was published. So the first renewal
// is sent after a second.
func TestRestartSoonAfterADelivery(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.publish(1)
		time.Sleep(time.Hour)
		d := newDiary()
		b.run(2, func(ctx context.Context, m jetstream.Msg) error {
			d.note("begun %d", delivery(m))
			time.Sleep(20 * time.Second)
			return ctx.Err()
		}, natsworker.WithConn, noLimits)
		time.Sleep(1100 * time.Millisecond)
		b.restart(2 * time.Second)
		b.empty()
		d.want(t, "0s begun 1")
	})
}

// Guarantee 4: a function's own acknowledgement is refused while the connection is lost, unless it is the ack, which stays
// true: nats.go would send it later, when it may be about the delivery of somebody else.
func TestFunctionSettlesWithoutAConnection(t *testing.T) {
	inBubble(t, ackWait(time.Minute), func(b *bench) {
		heard := b.advisories()
		b.publish(1)
		l := b.link(nil)
		c, nc := b.consumer(l)
		b.handle(c, natsworker.Handler(c, func(_ context.Context, m jetstream.Msg) error {
			l.Cut()
			synctest.Wait()
			for i, err := range []error{m.Nak(), m.NakWithDelay(time.Second), m.Term(), m.TermWithReason("no")} {
				if !errors.Is(err, nats.ErrDisconnected) {
					t.Errorf("%d: %v", i, err)
				}
			}
			if err := m.Ack(); err != nil {
				t.Error(err)
			}
			l.Mend()
			return nil
		}, natsworker.WithConn(nc), noLimits))
		b.empty()
		if got := append(heard("MSG_NAKED"), heard("MSG_TERMINATED")...); len(got) != 0 {
			t.Errorf("sent: %v", got)
		}
	})
}

// A connection that is closed does not come back, and is not waited for.
func TestClosedConnection(t *testing.T) {
	for name, result := range map[string]error{"done": nil, "failed": errBroken} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ackWait(5*time.Minute), func(b *bench) {
				b.publish(1)
				c, nc := b.consumer(b.link(nil))
				m, err := c.Next()
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				natsworker.Handler(c, func(context.Context, jetstream.Msg) error { nc.Close(); return result }, natsworker.WithConn(nc))(m)
				if took := time.Since(begun); took != 0 {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}
