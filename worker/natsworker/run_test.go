package natsworker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// A running Run.
type running struct {
	b    *bench
	nc   *nats.Conn
	stop context.CancelCauseFunc
	err  chan error
}

func (b *bench) run(url string, n int, work func(context.Context, jetstream.Msg) error, conn func(*nats.Conn) natsworker.Option, opts ...natsworker.Option) *running {
	b.Helper()
	c, nc := b.consumer(url)
	ctx, stop := context.WithCancelCause(context.Background())
	r := &running{b: b, nc: nc, stop: stop, err: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.err <- natsworker.Run(ctx, c, n, work, append(opts, conn(nc))...)
	}()
	b.Cleanup(func() {
		stop(nil)
		<-ended
	})
	return r
}

// ends returns what Run returned, and how long after it was asked for.
func (r *running) ends() (time.Duration, error) {
	r.b.Helper()
	begun := time.Now()
	select {
	case err := <-r.err:
		return time.Since(begun), err
	case <-time.After(3 * slack):
		r.b.Fatal("Run does not return")
		return 0, nil
	}
}

// Guarantee 6: n at a time, and none that waits.
func TestRunTakesAsManyAsItWorksOn(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		const n, messages = 3, 9
		b := newBench(t, nil)
		b.publish(messages)
		var mu sync.Mutex
		now, most, done := 0, 0, 0
		r := b.run(b.server.ClientURL(), n, func(context.Context, jetstream.Msg) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			now--
			done++
			return nil
		}, conn, noLimits)
		mostPending := 0
		eventually(t, 3*slack, func() bool {
			left, pending := b.state()
			mostPending = max(mostPending, pending)
			return left == 0
		}, func() string { return "not done" })
		r.stop(nil)
		if _, err := r.ends(); err != nil {
			t.Error(err)
		}
		if most != n || done != messages {
			t.Errorf("%d at a time, %d in all; want %d and %d", most, done, n, messages)
		}
		if mostPending > n {
			t.Errorf("%d delivered at a time, want at most %d", mostPending, n)
		}
	})
}

// Run pulls within what the consumer allows.
func TestRunWithMaxRequestExpires(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.MaxRequestExpires = 300 * time.Millisecond })
	b.publish(1)
	b.run(b.server.ClientURL(), 1, fails(nil), natsworker.WithConn)
	b.empty()
}

// Guarantee 6, after a lost connection: none waits, delivered, until there is room for it.
//
// AckWait is far from what the test takes. It was 4 s, and messages took 5 s, so that one that
// waited was done twice; and a disk or processor that was blocked for 2 s, which is what an outage
// may last then, cost a lease and showed as one execution too many.
func TestRunTakesNoMoreAfterAReconnect(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		b := newBench(t, nil)
		b.publish(3)
		p := newProxy(t, b.server)
		var runs atomic.Int32
		logger := slog.New(slog.NewTextHandler(t.Output(), nil)) // seen where the test fails
		b.run(p.url(), 1, func(_ context.Context, m jetstream.Msg) error {
			logger.Info("begun", "subject", m.Subject(), "delivery", delivery(m))
			if runs.Add(1) == 1 {
				p.lose()
				p.find()
			}
			// Consume pulls another as soon as it is connected again.
			time.Sleep(2 * time.Second)
			if _, pending := b.state(); pending != 1 {
				t.Errorf("%s: %d delivered", m.Subject(), pending)
			}
			return nil
		}, conn, noLimits, natsworker.WithLogger(logger))
		b.empty()
		if n := runs.Load(); n != 3 {
			t.Errorf("%d executions of 3 messages", n)
		}
	})
}

// Guarantee 7: functions in progress are aborted, with the caller's cause, and their messages
// are another worker's at once, long before AckWait.
func TestRunAborts(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute })
		b.publish(2)
		errMaintenance := errors.New("maintenance")
		begun, aborted := make(chan struct{}, 2), make(chan error, 2)
		r := b.run(b.server.ClientURL(), 3, func(ctx context.Context, _ jetstream.Msg) error {
			begun <- struct{}{}
			<-ctx.Done()
			aborted <- context.Cause(ctx)
			return ctx.Err()
		}, conn, noLimits)
		<-begun
		<-begun
		r.stop(errMaintenance)
		if took, err := r.ends(); err != nil || took > slack {
			t.Errorf("%v after %v", err, took)
		}
		r.nc.Close()
		for range 2 {
			if err := <-aborted; !errors.Is(err, errMaintenance) {
				t.Errorf("the cause is %v", err)
			}
		}
		c, _ := b.consumer(b.server.ClientURL())
		for range 2 {
			m, err := c.Next(jetstream.FetchMaxWait(slack))
			if err != nil {
				t.Fatal("not given back: ", err)
			}
			if n := delivery(m); n != 2 {
				t.Errorf("delivery %d", n)
			}
		}
	})
}

// Guarantee 7: a drain lets finish what can, and aborts the rest.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute })
	b.publish(3) // one more than it takes
	const drain = 8 * time.Second
	var begun sync.WaitGroup
	begun.Add(2)
	stopping := make(chan struct{})
	aborted := make(chan time.Time, 1)
	r := b.run(b.server.ClientURL(), 2, func(ctx context.Context, m jetstream.Msg) error {
		begun.Done()
		<-stopping
		if m.Subject() == "jobs.1" {
			select {
			case <-ctx.Done():
				t.Error("stopped within the drain")
			case <-time.After(drain / 4):
			}
			return nil
		}
		<-ctx.Done()
		aborted <- time.Now()
		return ctx.Err()
	}, natsworker.WithConn, noLimits, natsworker.WithDrain(drain))
	begun.Wait()
	asked := time.Now()
	r.stop(nil)
	close(stopping)
	if _, err := r.ends(); err != nil {
		t.Error(err)
	}
	if at := (<-aborted).Sub(asked); at < drain || at > drain+slack {
		t.Errorf("aborted after %v", at)
	}
	if left, pending := b.state(); left != 2 || pending > 1 {
		t.Errorf("%d left, %d unacknowledged; want 2, and at most the one given back", left, pending)
	}
}

// Guarantee 7, without a server that answers: Run gives up after a few seconds, long before
// AckWait.
func TestRunStopsWithoutAServer(t *testing.T) {
	for name, test := range map[string]struct {
		result func(context.Context) error
		drain  time.Duration
		want   time.Duration
	}{
		// A second for what was being asked for, then 5 s.
		"aborted":             {func(ctx context.Context) error { <-ctx.Done(); return nil }, 0, 6 * time.Second},
		"failed in the drain": {func(context.Context) error { time.Sleep(3 * time.Second); return errBroken }, 10 * time.Second, 15 * time.Second},
		"done in the drain":   {func(context.Context) error { time.Sleep(3 * time.Second); return nil }, 10 * time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(func(c *jetstream.ConsumerConfig) { c.AckWait = time.Minute })
				m := newFakeMsg(1)
				m.fail = func(what string) error {
					if what == "double ack" {
						return errNoAnswer
					}
					return nil
				}
				c.messages <- m
				ctx, stop := context.WithCancel(t.Context())
				var stopped time.Time
				err := natsworker.Run(ctx, c, 2, func(ctx context.Context, _ jetstream.Msg) error {
					time.Sleep(500 * time.Millisecond)
					c.silent.Store(true)
					// Right after the other slot has begun to ask.
					time.Sleep(500 * time.Millisecond)
					synctest.Wait()
					stopped = time.Now()
					stop()
					return test.result(ctx)
				}, noLimits, natsworker.WithDrain(test.drain))
				if took := time.Since(stopped); err != nil || took != test.want {
					t.Errorf("%v after %v, want %v", err, took, test.want)
				}
				if len(m.heard()) != 0 {
					t.Errorf("said %q", m.heard())
				}
			})
		})
	}
}

// A term that was published but not confirmed is logged as that, and not as the function's own.
func TestUnconfirmedTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		c := consumerWith(nil)
		m := newFakeMsg(1)
		terms := 0
		m.fail = func(what string) error { // as nats.go does
			if what == "term broken" {
				if terms++; terms > 1 {
					return jetstream.ErrMsgAlreadyAckd
				}
				c.silent.Store(true)
				time.AfterFunc(6*time.Second, func() { c.silent.Store(false) })
			}
			return nil
		}
		c.messages <- m
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := natsworker.Run(ctx, c, 1, fails(natsworker.Reject(errBroken)), noLimits,
			natsworker.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))); err != nil {
			t.Error(err)
		}
		if got := log.String(); terms != 2 || !strings.Contains(got, "outcome unconfirmed") || strings.Contains(got, "itself") {
			t.Errorf("%d terms: %s", terms, got)
		}
	})
}

// A worker that stops gives messages back when no pull request is outstanding: it would come
// straight back, as one more delivery. A message that arrives meanwhile is not run, even if
// there is time to drain.
func TestRunGivesBackWhenItHasStoppedPulling(t *testing.T) {
	for _, drain := range []time.Duration{0, 10 * time.Second} {
		t.Run(drain.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(nil)
				m, late := newFakeMsg(1), newFakeMsg(1)
				for _, m := range []*fakeMsg{m, late} {
					m.fail = func(what string) error {
						if n := c.asking.Load(); n > 0 {
							t.Errorf("%q while %d ask", what, n)
						}
						return nil
					}
				}
				c.messages <- m
				ctx, stop := context.WithCancel(t.Context())
				runs := 0
				if err := natsworker.Run(ctx, c, 5, func(ctx context.Context, _ jetstream.Msg) error {
					if runs++; runs > 1 {
						t.Error("the late message is run")
						return nil
					}
					time.Sleep(1500 * time.Millisecond)
					stop()
					c.messages <- late
					<-ctx.Done()
					return ctx.Err()
				}, noLimits, natsworker.WithDrain(drain)); err != nil {
					t.Error(err)
				}
				for _, m := range []*fakeMsg{m, late} {
					if got := trim(m.heard()); len(got) == 0 || got[len(got)-1] != "nak" {
						t.Errorf("sent: %q", got)
					}
				}
			})
		})
	}
}

// An error that follows from the end is none of Run's.
func TestRunErrorAfterTheEnd(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := consumerWith(nil)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				time.Sleep(1500 * time.Millisecond)
				if stopped {
					stop()
				}
				c.failing.Store(&nats.ErrConnectionClosed)
			}()
			err := natsworker.Run(ctx, c, 2, fails(nil))
			if stopped && err != nil || !stopped && !errors.Is(err, nats.ErrConnectionClosed) {
				t.Errorf("stopped %v: %v", stopped, err)
			}
		})
	}
}

// trim leaves the times out.
func trim(heard []string) (what []string) {
	for _, s := range heard {
		_, s, _ = strings.Cut(s, " ")
		what = append(what, s)
	}
	return what
}

// The drain ends as soon as the last function has ended by itself.
func TestRunDrainsNoLongerThanNeeded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish(1)
	begun := make(chan struct{})
	r := b.run(b.server.ClientURL(), 2, func(context.Context, jetstream.Msg) error {
		close(begun)
		time.Sleep(500 * time.Millisecond)
		return nil
	}, natsworker.WithConn, noLimits, natsworker.WithDrain(time.Hour))
	<-begun
	r.stop(nil)
	if _, err := r.ends(); err != nil {
		t.Error(err)
	}
	b.empty()
}

// A message that arrives as the worker stops is not left to AckWait.
func TestRunStopsWhileMessagesArrive(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 5 * time.Minute })
	publishing, stop := context.WithCancel(t.Context())
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for i := 0; publishing.Err() == nil; i++ {
			if _, err := b.js.PublishAsync(fmt.Sprintf("jobs.%d", i), nil); err != nil && publishing.Err() == nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		}
	})
	for range 3 {
		r := b.run(b.server.ClientURL(), 8, fails(nil), natsworker.WithConn, noLimits)
		time.Sleep(100 * time.Millisecond)
		r.stop(nil)
		if _, err := r.ends(); err != nil {
			t.Error(err)
		}
	}
	stop()
	publisher.Wait()
	<-b.js.PublishAsyncComplete()
	b.run(b.server.ClientURL(), 8, fails(nil), natsworker.WithConn, noLimits)
	b.empty()
}

// Guarantee 6: an abandoned function holds its place until it returns, and a Run that has
// nothing else left ends.
func TestRunOfAbandonedFunctions(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Second })
	b.publish(3)
	limits := timeout.Config{Idle: 300 * time.Millisecond, Grace: 100 * time.Millisecond}
	release := make(chan struct{})
	var runs, inside atomic.Int32
	deaf := func(_ context.Context, m jetstream.Msg) error {
		if m.Subject() == "jobs.3" {
			return nil
		}
		runs.Add(1)
		defer inside.Add(-1)
		if n := inside.Add(1); n > 2 {
			t.Errorf("%d at a time", n)
		}
		<-release
		return nil
	}
	first := b.run(b.server.ClientURL(), 2, deaf, natsworker.WithConn, natsworker.WithOptions(limits), natsworker.WithBackoff(time.Minute, time.Minute))
	if _, err := first.ends(); !errors.Is(err, natsworker.ErrStuck) {
		t.Errorf("Run returned %v", err)
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("%d executions, want the two that are deaf", n)
	}
	close(release)
}

// Guarantee 6: Run ends AckWait after the last of its functions was abandoned, unless one of
// them returns before.
func TestStuck(t *testing.T) {
	const ackWait = time.Minute
	limits := timeout.Config{Total: time.Second, Grace: time.Second} // abandoned after 2 s
	const forever = 1000 * time.Hour
	for name, test := range map[string]struct {
		take []time.Duration // how long the functions take, two at a time
		want time.Duration   // when Run ends with ErrStuck; 0 is never
	}{
		"none":                   {[]time.Duration{0, 0, 0}, 0},
		"one of two":             {[]time.Duration{forever, 0, 0}, 0},
		"both":                   {[]time.Duration{forever, forever}, 2*time.Second + ackWait},
		"both, one just returns": {[]time.Duration{forever, 2*time.Second + ackWait - 1}, 0},
		"both, one is too late":  {[]time.Duration{forever, 2*time.Second + ackWait + 1}, 2*time.Second + ackWait},
		"both, one later":        {[]time.Duration{forever, time.Second - 1, forever}, 3*time.Second - 1 + ackWait},
		"again after a return":   {[]time.Duration{forever, 10 * time.Second, forever}, 12*time.Second + ackWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(func(c *jetstream.ConsumerConfig) { c.AckWait = ackWait })
				for _, d := range test.take {
					m := newFakeMsg(1)
					m.data = d.String()
					c.messages <- m
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				begun := time.Now()
				err := natsworker.Run(ctx, c, 2, func(_ context.Context, m jetstream.Msg) error {
					d, err := time.ParseDuration(string(m.Data()))
					if err != nil {
						t.Error(err)
					}
					time.Sleep(d)
					return nil
				}, natsworker.WithOptions(limits))
				// A slot without a function may be asking for a message when Run ends.
				took := time.Since(begun)
				switch {
				case test.want == 0:
					if err != nil || took < time.Hour {
						t.Errorf("%v after %v", err, took)
					}
				case !errors.Is(err, natsworker.ErrStuck) || took != test.want:
					t.Errorf("%v after %v, want %v", err, took, test.want)
				}
				time.Sleep(forever)
			})
		})
	}
}

// One that returns after all makes place again.
func TestRunGoesOnAfterAnAbandonedFunction(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish(2)
	b.run(b.server.ClientURL(), 1, func(_ context.Context, m jetstream.Msg) error {
		if delivery(m) == 1 && m.Subject() == "jobs.1" {
			time.Sleep(time.Second)
		}
		return nil
	}, natsworker.WithConn, natsworker.WithOptions(timeout.Config{Idle: 200 * time.Millisecond, Grace: time.Millisecond}))
	b.empty()
}

// What ends a Run by itself, and how soon.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*bench, *running) error
		want error
	}{
		"the consumer is deleted": {func(b *bench, _ *running) error {
			return b.js.DeleteConsumer(context.Background(), streamName, consumerName)
		}, jetstream.ErrConsumerDeleted},
		"the stream is deleted": {func(b *bench, _ *running) error {
			return b.js.DeleteStream(context.Background(), streamName)
		}, jetstream.ErrConsumerDeleted},
		"the connection is closed": {func(_ *bench, r *running) error { r.nc.Close(); return nil }, nats.ErrConnectionClosed},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy %v", name, busy), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = time.Second })
				begun := make(chan struct{}, 1)
				if busy {
					b.publish(1)
				}
				r := b.run(b.server.ClientURL(), 1, func(ctx context.Context, _ jetstream.Msg) error {
					begun <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				}, natsworker.WithConn, noLimits)
				if busy {
					<-begun
				} else {
					time.Sleep(100 * time.Millisecond) // a request is out, most likely
				}
				if err := test.end(b, r); err != nil {
					t.Fatal(err)
				}
				_, err := r.ends()
				// A worker that was not asking when it was deleted learns it by asking.
				if !errors.Is(err, test.want) && !(errors.Is(test.want, jetstream.ErrConsumerDeleted) &&
					(errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound))) {
					t.Errorf("Run returned %v", err)
				}
			})
		}
	}
}

// A server that is away is waited for.
func TestRunOutlivesTheServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *jetstream.ConsumerConfig) { c.AckWait = 3 * time.Second })
	b.publish(2)
	done := make(chan string, 10)
	r := b.run(b.server.ClientURL(), 1, func(_ context.Context, m jetstream.Msg) error {
		done <- m.Subject()
		return nil
	}, natsworker.WithConn, noLimits)
	<-done
	<-done
	eventually(t, slack, func() bool { _, pending := b.state(); return pending == 0 }, func() string { return "not acknowledged" })
	b.restart(2 * time.Second)
	eventually(t, 3*slack, b.nc.IsConnected, func() string { return "not connected again" })
	b.publish(1)
	select {
	case got := <-done:
		if got != "jobs.3" {
			t.Errorf("%s again", got)
		}
	case err := <-r.err:
		t.Fatalf("Run returned %v", err)
	case <-time.After(3 * slack):
		t.Fatal("Run takes no messages any more")
	}
}
