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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Guarantee 6: n at a time, and none that waits, also after a reconnect, when Consume would pull another. MaxRequestExpires
// is no hindrance.
func TestRunTakesAsManyAsItWorksOn(t *testing.T) {
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		inBubble(t, func(c *jetstream.ConsumerConfig) { c.MaxRequestExpires = 300 * time.Millisecond }, func(b *bench) {
			const n, messages = 3, 9
			b.publish(messages)
			d := newDiary()
			var r *running
			r = b.run(n, func(_ context.Context, m jetstream.Msg) error {
				d.note("begun")
				if m.Subject() == "jobs.1" {
					time.AfterFunc(time.Second, func() { r.link.Cut(); r.link.Mend() })
				}
				time.Sleep(time.Minute)
				if _, pending := b.state(); pending > n {
					t.Errorf("%d delivered at a time", pending)
				}
				return nil
			}, conn, noLimits)
			b.empty()
			r.stop(nil)
			if _, err := r.ends(); err != nil {
				t.Error(err)
			}
			d.want(t, "0s begun", "0s begun", "0s begun", "1m0s begun", "1m0s begun", "1m0s begun", "2m0s begun", "2m0s begun", "2m0s begun")
		})
	})
}

// Guarantee 7: functions in progress are aborted, with the caller's cause, and when Run returns their messages are given
// back, even if that is the last thing that the process does: another worker has them at once.
func TestRunAborts(t *testing.T) {
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		inBubble(t, ackWait(time.Hour), func(b *bench) {
			b.publish(2)
			errMaintenance := errors.New("maintenance")
			r := b.run(3, func(ctx context.Context, _ jetstream.Msg) error {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, errMaintenance) {
					t.Errorf("the cause is %v", cause)
				}
				return ctx.Err()
			}, conn, noLimits)
			time.Sleep(100 * time.Millisecond)
			r.stop(errMaintenance)
			if took, err := r.ends(); err != nil || took > time.Second {
				t.Errorf("%v after %v", err, took) // of a pull request
			}
			r.link.Cut()
			for range 2 {
				if m := b.next(time.Millisecond); delivery(m) != 2 {
					t.Errorf("delivery %d", delivery(m))
				}
			}
		})
	})
}

// Guarantee 7: a drain lets finish what can, and aborts the rest, when it is over and not before. It ends as soon as the
// last function has ended by itself.
func TestRunDrains(t *testing.T) {
	const drain = 8 * time.Second
	for name, test := range map[string]struct {
		last  time.Duration // how long the second function takes
		ends  time.Duration
		left  uint64
		lines []string
	}{
		"all done":    {5 * time.Second, 5 * time.Second, 1, []string{"3s done", "6s done"}},
		"at the end":  {drain - 1, drain - 1, 1, []string{"3s done", "8.999999999s done"}},
		"one aborted": {time.Hour, drain, 2, []string{"3s done", "9s aborted"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ackWait(time.Minute), func(b *bench) {
				b.publish(3) // one more than it takes
				d := newDiary()
				r := b.run(2, func(ctx context.Context, m jetstream.Msg) error {
					time.Sleep(time.Second)
					take := test.last
					if m.Subject() == "jobs.1" {
						take = 2 * time.Second
					}
					select {
					case <-ctx.Done():
						d.note("aborted")
					case <-time.After(take):
						d.note("done")
					}
					return ctx.Err()
				}, natsworker.WithConn, noLimits, natsworker.WithDrain(drain))
				time.Sleep(time.Second)
				r.stop(nil)
				if took, err := r.ends(); err != nil || took != test.ends {
					t.Errorf("%v after %v", err, took)
				}
				d.want(t, test.lines...)
				if left, pending := b.state(); left != test.left || pending > 1 {
					t.Errorf("%d left, %d unacknowledged; at most the one given back", left, pending)
				}
			})
		})
	}
}

// Guarantee 7, without a server that answers: Run gives up after a few seconds, long before AckWait.
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
				c := consumerWith(ackWait(time.Minute))
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
		var log bytes.Buffer
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

// A worker that stops gives messages back when no pull request is outstanding: it would come straight back, as one more
// delivery. A message that arrives meanwhile is not run, even if there is time to drain.
func TestRunGivesBackWhenItHasStoppedPulling(t *testing.T) {
	for _, drain := range []time.Duration{0, 10 * time.Second} {
		t.Run(drain.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(nil)
				m, late := newFakeMsg(1), newFakeMsg(1)
				for _, m := range []*fakeMsg{m, late} {
					m.fail = func(what string) error {
						if n := c.asking.Load(); n > 0 && what != "in progress" {
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
					if got := m.heard(); len(got) == 0 || !strings.HasSuffix(got[len(got)-1], " nak") {
						t.Errorf("sent: %q", got)
					}
				}
			})
		})
	}
}

// Guarantee 6: an abandoned function holds its place until it returns. Run ends AckWait after the last of its functions
// was abandoned, unless one of them returns before.
func TestStuck(t *testing.T) {
	const wait = time.Minute
	limits := timeout.Config{Total: time.Second, Grace: time.Second} // abandoned after 2 s
	const forever = 1000 * time.Hour
	for name, test := range map[string]struct {
		take []time.Duration // how long the functions take, two at a time
		want time.Duration   // when Run ends with ErrStuck; 0 is never
	}{
		"none":                   {[]time.Duration{0, 0, 0}, 0},
		"one of two":             {[]time.Duration{forever, 0, 0}, 0},
		"both":                   {[]time.Duration{forever, forever, forever}, 2*time.Second + wait},
		"both, one just returns": {[]time.Duration{forever, 2*time.Second + wait - 1}, 0},
		"both, one is too late":  {[]time.Duration{forever, 2*time.Second + wait + 1}, 2*time.Second + wait},
		"both, one later":        {[]time.Duration{forever, time.Second - 1, forever}, 3*time.Second - 1 + wait},
		"again after a return":   {[]time.Duration{forever, 10 * time.Second, forever}, 12*time.Second + wait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(ackWait(wait))
				for _, d := range test.take {
					m := newFakeMsg(1)
					m.data = d.String()
					c.messages <- m
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				begun := time.Now()
				var mu sync.Mutex
				inside := 0
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					if inside += n; inside > 2 {
						t.Errorf("%d at a time", inside)
					}
				}
				err := natsworker.Run(ctx, c, 2, func(_ context.Context, m jetstream.Msg) error {
					count(1)
					defer count(-1)
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

// What ends a Run by itself, and how soon.
func TestRunEnds(t *testing.T) {
	gone := []error{jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound}
	for name, test := range map[string]struct {
		end  func(*bench, *running) error
		want []error
	}{
		"the consumer is deleted": {func(b *bench, _ *running) error {
			return b.js.DeleteConsumer(context.Background(), streamName, consumerName)
		}, gone},
		"the stream is deleted": {func(b *bench, _ *running) error {
			return b.js.DeleteStream(context.Background(), streamName)
		}, gone},
		"the connection is closed": {func(_ *bench, r *running) error { r.nc.Close(); return nil }, []error{nats.ErrConnectionClosed}},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy %v", name, busy), func(t *testing.T) {
				inBubble(t, ackWait(6*time.Second), func(b *bench) {
					if busy {
						b.publish(1)
					}
					r := b.run(1, hangs(nil), natsworker.WithConn, noLimits)
					time.Sleep(100 * time.Millisecond)
					if err := test.end(b, r); err != nil {
						t.Fatal(err)
					}
					took, err := r.ends()
					known := false
					for _, want := range test.want {
						known = known || errors.Is(err, want)
					}
					// One that is busy learns of it when its lease is lost.
					if !known || took > 8*time.Second {
						t.Errorf("Run returned %v after %v", err, took)
					}
				})
			})
		}
	}
	for _, stopped := range []bool{true, false} {
		t.Run(fmt.Sprint("it was over before, ", stopped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(nil)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(1500*time.Millisecond, func() {
					if stopped {
						stop()
					}
					c.failing.Store(&nats.ErrConnectionClosed)
				})
				err := natsworker.Run(ctx, c, 2, fails(nil))
				if stopped && err != nil || !stopped && !errors.Is(err, nats.ErrConnectionClosed) {
					t.Error(err)
				}
			})
		})
	}
}

// A server that is away is waited for.
func TestRunOutlivesTheServer(t *testing.T) {
	bothWays(t, func(t *testing.T, conn func(*nats.Conn) natsworker.Option) {
		inBubble(t, nil, func(b *bench) {
			d := newDiary()
			b.run(1, func(_ context.Context, m jetstream.Msg) error { d.note("%s", m.Subject()); return nil }, conn, noLimits)
			b.publish(1)
			b.empty()
			b.restart(5 * time.Minute)
			b.eventually("the connection", b.nc.IsConnected)
			b.publish(1)
			b.empty()
			if len(d.lines) != 2 || d.lines[0] != "0s jobs.1" || !strings.HasSuffix(d.lines[1], " jobs.2") {
				t.Errorf("%q", d.lines)
			}
		})
	})
}
