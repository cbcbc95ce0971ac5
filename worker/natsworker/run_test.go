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

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Guarantee 7: a drain lets finish what can, and aborts the rest, with the caller's cause, when it is over and not before.
// It ends as soon as the last function has ended by itself.
func TestRunDrains(t *testing.T) {
	const drain = 8 * time.Second
	errMaintenance := errors.New("maintenance")
	for name, test := range map[string]struct {
		drain, take, ends time.Duration
		want              string
	}{
		"done":       {drain, 5 * time.Second, 6 * time.Second, "6s double ack"},
		"at the end": {drain, drain - 1, time.Second + drain - 1, "8.999999999s double ack"},
		"aborted":    {drain, time.Hour, time.Second + drain, "9s nak"},
		"no drain":   {0, time.Hour, 2 * time.Second, "2s nak"}, // when the other slot's request has ended
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, m := consumerWith(nil), newFakeMsg(1)
				m.brief = true
				c.messages <- m
				ctx, stop := context.WithCancelCause(t.Context())
				err := natsworker.Run(ctx, c, 2, func(ctx context.Context, _ jetstream.Msg) error {
					time.Sleep(time.Second)
					synctest.Wait()
					stop(errMaintenance)
					select {
					case <-ctx.Done():
						if cause := context.Cause(ctx); !errors.Is(cause, errMaintenance) {
							t.Errorf("the cause is %v", cause)
						}
					case <-time.After(test.take):
					}
					return ctx.Err()
				}, natsworker.Options{Limits: new(timeout.Config), Drain: test.drain})
				if took := time.Since(m.begun); err != nil || took != test.ends {
					t.Errorf("%v after %v", err, took)
				}
				if diff := cmp.Diff([]string{test.want}, m.heard()); diff != "" {
					t.Error(diff)
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
		"aborted":             {func(ctx context.Context) error { <-ctx.Done(); return nil }, 0, 5 * time.Second},
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
				}, natsworker.Options{Limits: new(timeout.Config), Drain: test.drain})
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
		if err := natsworker.Run(ctx, c, 1, fails(natsworker.Reject(errBroken)),
			natsworker.Options{Limits: new(timeout.Config), Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
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
				}, natsworker.Options{Limits: new(timeout.Config), Drain: drain}); err != nil {
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
		"both":                   {[]time.Duration{forever, forever, forever}, 2*time.Second + wait},
		"both, one just returns": {[]time.Duration{forever, 2*time.Second + wait - 1}, 0},
		"both, one is too late":  {[]time.Duration{forever, 2*time.Second + wait + 1}, 2*time.Second + wait},
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
				}, limited(limits))
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

// What ends a Run by itself, and how soon: a slot that is busy learns of it when its lease is lost.
func TestRunEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*bench, *nats.Conn) error
		want error
	}{
		"the consumer is deleted": {func(b *bench, _ *nats.Conn) error {
			return b.js.DeleteConsumer(context.Background(), streamName, consumerName)
		}, jetstream.ErrConsumerNotFound},
		"the stream is deleted":    {func(b *bench, _ *nats.Conn) error { return b.js.DeleteStream(context.Background(), streamName) }, jetstream.ErrStreamNotFound},
		"the connection is closed": {func(_ *bench, nc *nats.Conn) error { nc.Close(); return nil }, nats.ErrConnectionClosed},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, busy %v", name, busy), func(t *testing.T) {
				inBubble(t, ackWait(6*time.Second), func(b *bench) {
					if busy {
						b.publish(1)
					}
					c, nc := b.consumer(b.link(nil))
					ended := make(chan error, 1)
					time.AfterFunc(100*time.Millisecond, func() { ended <- test.end(b, nc) })
					begun := time.Now()
					err := natsworker.Run(context.Background(), c, 1, hangs(nil), natsworker.Options{Limits: new(timeout.Config), Conn: nc})
					deleted := errors.Is(err, jetstream.ErrConsumerDeleted) && test.want != nats.ErrConnectionClosed
					if took := time.Since(begun); !errors.Is(err, test.want) && !deleted || took > 8*time.Second {
						t.Errorf("Run returned %v after %v", err, took)
					}
					if err := <-ended; err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A connection that is closed does not come back, and a Handler does not wait for it.
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
				handler(c, func(context.Context, jetstream.Msg) error { nc.Close(); return result }, natsworker.Options{Conn: nc})(m)
				if took := time.Since(begun); took != 0 {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// Guarantee 4: a function's own acknowledgement is refused while the connection is lost, unless it is the ack, which stays
// true: nats.go would send it later, when it may be about the delivery of somebody else.
func TestFunctionSettlesWithoutAConnection(t *testing.T) {
	inBubble(t, ackWait(time.Minute), func(b *bench) {
		b.publish(1)
		l := b.link(nil)
		c, nc := b.consumer(l)
		m, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		handler(c, func(_ context.Context, m jetstream.Msg) error {
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
		}, natsworker.Options{Conn: nc})(m)
		b.empty()
	})
}

// The log has a line for each message that was not simply done.
func TestLog(t *testing.T) {
	const of = " stream=JOBS consumer=workers subject=jobs sequence=1 delivery=1 id=\"order 17\" "
	for name, test := range map[string]struct {
		fn   func(context.Context, jetstream.Msg) error
		want []string
	}{
		"failed":    {fails(errBroken), []string{`level=WARN msg="given back"` + of + `delay=1s error=broken`}},
		"rejected":  {fails(natsworker.Reject(errBroken)), []string{`level=WARN msg=terminated` + of + `reason=broken`}},
		"panicked":  {func(context.Context, jetstream.Msg) error { panic("oh") }, []string{`msg="tool panicked" tool=workers error="panic: oh"`, `msg="given back"` + of + `delay=1s error="panic: oh`}},
		"timed out": {hangs(nil), []string{`msg="tool timed out" tool=workers`, strings.TrimSpace(of) + "\n", `msg="given back"` + of + `delay=0s error="No progress for 1s`}},
		"acked, and failed": {func(_ context.Context, m jetstream.Msg) error { _ = m.Ack(); return errBroken },
			[]string{`level=WARN msg="the function failed after acknowledging the message itself"` + of + `error=broken`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				handler(consumerWith(nil), test.fn, natsworker.Options{Limits: &timeout.Config{Idle: time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))})(newFakeMsg(1))
				for _, want := range test.want {
					if !strings.Contains(log.String(), want) {
						t.Errorf("no line with\n%s\nin\n%s", want, &log)
					}
				}
			})
		})
	}
}
