package natsworker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/lease"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// Guarantees 1 and 2: what is sent of a delivery and when, and when its function is stopped, to the nanosecond.
func TestLease(t *testing.T) {
	const hour = time.Hour
	renewed := func(until int, last ...string) (want []string) {
		for s := 5; s <= until; s += 5 {
			want = append(want, fmt.Sprintf("%ds in progress", s))
		}
		return append(want, last...)
	}
	// fails returns an error for renewals that are sent in a time.
	failsIn := func(from, to time.Duration, err error) func(string, time.Duration) error {
		return func(what string, at time.Duration) error {
			if what == "in progress" && from <= at && at < to {
				return err
			}
			return nil
		}
	}
	type test struct {
		change func(*jetstream.ConsumerConfig)
		limits timeout.Config
		fail   func(what string, at time.Duration) error
		take   time.Duration // of the function
		deaf   bool
		result error
		want   []string
		lost   time.Duration // when the function was told so; 0 is never
		ends   time.Duration // when the handler returns, if not 0
		tries  int           // to send, if not 0
	}
	tests := map[string]test{
		// The message is kept, however silent the function is, and up to the end of the grace.
		"a function that sleeps":             {take: 33 * time.Second, want: renewed(30, "33s double ack")},
		"one that is done just before":       {take: 5*time.Second - 1, want: []string{"4.999999999s double ack"}},
		"a stuck one, until its idle limit":  {limits: timeout.Config{Idle: 12 * time.Second}, take: hour, want: renewed(10, "12s nak")},
		"a deaf one, until its grace":        {limits: timeout.Config{Idle: 8 * time.Second, Grace: 4 * time.Second}, take: hour, deaf: true, want: renewed(10, "12s nak 4s")},
		"a short AckWait":                    {change: ackWait(3 * time.Second), take: 1250 * time.Millisecond, want: []string{"500ms in progress", "1s in progress", "1.25s double ack"}},
		"no AckWait is the server's default": {change: ackWait(0), take: 7 * time.Second, want: renewed(5, "7s double ack")},
		"the shortest BackOff": {change: func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{time.Minute, 3 * time.Second} }, take: 750 * time.Millisecond,
			want: []string{"500ms in progress", "750ms double ack"}},
		// It is lost five sixths after the last renewal was sent, and nothing is sent any more.
		"nothing can be sent":   {fail: failsIn(0, hour, errBroken), take: hour, lost: 25 * time.Second, want: []string{}},
		"not after the first":   {fail: failsIn(6*time.Second, hour, errBroken), take: hour, lost: 30 * time.Second, want: renewed(5)},
		"not after the second":  {fail: failsIn(11*time.Second, hour, errBroken), take: hour, lost: 35 * time.Second, want: renewed(10)},
		"from the first moment": {fail: failsIn(5*time.Second, hour, errBroken), take: hour, lost: 25 * time.Second, want: []string{}},
		"for good":              {fail: failsIn(6*time.Second, hour, nats.ErrConnectionClosed), take: hour, lost: 30 * time.Second, want: renewed(5)},
		"with a longer grace":   {fail: failsIn(0, hour, errBroken), limits: timeout.Config{Grace: 8 * time.Second}, take: hour, lost: 20500 * time.Millisecond, want: []string{}},
		"counted from when it was sent, not from its answer": {fail: func(what string, at time.Duration) error {
			if at > 5*time.Second {
				return errBroken
			}
			time.Sleep(4 * time.Second)
			return nil
		}, take: hour, lost: 30 * time.Second, want: []string{"9s in progress"}},
		// A renewal that fails is sent again soon.
		"a renewal is repeated": {fail: failsIn(10*time.Second, 16*time.Second, errBroken), take: 23 * time.Second,
			want: []string{"5s in progress", "16.75s in progress", "21.75s in progress", "23s double ack"}},
		// The bound on an outage in the package documentation: three fifths of the lease, 18 s of 30, cost nothing.
		"an outage of 3/5 before the first renewal":  {fail: failsIn(5*time.Second-1, 23*time.Second-1, errBroken), take: hour},
		"an outage of 3/5 just before a renewal":     {fail: failsIn(10*time.Second-1, 28*time.Second-1, errBroken), take: hour},
		"an outage of 7/10 less a grace of 6 s":      {limits: timeout.Config{Grace: 6 * time.Second}, fail: failsIn(10*time.Second-1, 25*time.Second-1, errBroken), take: hour},
		"an outage of 7/10 just before a renewal":    {fail: failsIn(10*time.Second-1, 31*time.Second-1, errBroken), take: hour, lost: 30 * time.Second},
		"an outage of nearly 5/6 just after renewal": {fail: failsIn(10*time.Second+1, 34*time.Second, errBroken), take: hour},
		"an outage of 5/6 just after a renewal":      {fail: failsIn(10*time.Second+1, 35*time.Second+1, errBroken), take: hour, lost: 35 * time.Second},
		// An ack without an answer is repeated for as long as the message is ours: each try takes a sixth of the lease. A nak is not: the second might be about somebody else's delivery.
		"an ack without an answer": {fail: func(string, time.Duration) error { return errNoAnswer }, ends: 25 * time.Second, tries: 5, want: []string{}},
		"a nak without an answer":  {fail: func(string, time.Duration) error { return errNoAnswer }, result: errBroken, tries: 1, want: []string{}},
		"an ack ends with the lease": {fail: func(what string, _ time.Duration) error {
			if what == "in progress" {
				return errBroken
			}
			return errNoAnswer
		}, take: 24 * time.Second, ends: 25 * time.Second, want: []string{}},
	}
	// A verdict that comes after the lease is not sent, even if the function has not heeded its context.
	for name, result := range map[string]error{"done": nil, "failed": errBroken, "rejected": natsworker.Reject(errBroken)} {
		said := map[string]string{"done": "double ack", "failed": "nak 1s", "rejected": "term broken"}[name]
		in := test{fail: failsIn(0, hour, errBroken), take: 25*time.Second - 1, deaf: true, result: result, want: []string{"24.999999999s " + said}}
		late := in
		late.take, late.lost, late.want = 25*time.Second, 25*time.Second, []string{}
		tests[name+" in time"], tests[name+" too late"] = in, late
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFakeMsg(1)
				tries := 0
				m.fail = func(what string) error {
					if tries++; test.fail == nil {
						return nil
					}
					return test.fail(what, time.Since(m.begun))
				}
				var told time.Duration
				limits := test.limits
				limits.Grace = cmp.Or(limits.Grace, time.Second)
				handler(consumerWith(test.change), func(ctx context.Context, _ jetstream.Msg) error {
					stop := context.AfterFunc(ctx, func() {
						if lost(ctx) {
							told = time.Since(m.begun)
						}
					})
					defer stop()
					done := ctx.Done()
					if test.deaf {
						done = nil
					}
					select {
					case <-done:
					case <-time.After(test.take):
					}
					synctest.Wait()
					return test.result
				}, limited(limits))(m)
				ends := time.Since(m.begun)
				time.Sleep(2 * hour) // nothing comes later
				if diff := gocmp.Diff(test.want, append([]string{}, m.heard()...)); diff != "" && test.want != nil {
					t.Error(diff)
				}
				if told != test.lost || test.ends > 0 && ends != test.ends || test.tries > 0 && tries != test.tries {
					t.Errorf("lost at %v, ended at %v, after %d tries", told, ends, tries)
				}
			})
		})
	}
}

// Guarantee 4: an acknowledgement of the function's own counts, once; then, and when the function has been stopped,
// nothing goes out any more.
func TestFunctionSettlesItsMessage(t *testing.T) {
	verbs := map[string]func(jetstream.Msg) error{
		"ack": jetstream.Msg.Ack, "double ack": func(m jetstream.Msg) error { return m.DoubleAck(context.Background()) }, "nak": jetstream.Msg.Nak,
		"nak 1s": func(m jetstream.Msg) error { return m.NakWithDelay(time.Second) }, "term": jetstream.Msg.Term,
		"term no": func(m jetstream.Msg) error { return m.TermWithReason("no") },
	}
	refused := func(t *testing.T, m jetstream.Msg, want error) {
		t.Helper()
		for name, say := range verbs {
			if err := say(m); !errors.Is(err, want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := m.InProgress(); !errors.Is(err, want) {
			t.Errorf("in progress: %v", err)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		for range 100 {
			if err := m.DoubleAck(gone); !errors.Is(err, want) {
				t.Fatalf("double ack, out of time: %v", err)
			}
		}
	}
	for name, say := range verbs {
		synctest.Test(t, func(t *testing.T) {
			m := newFakeMsg(1)
			handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
				time.Sleep(500 * time.Millisecond)
				if err := say(m); err != nil {
					t.Error(err)
				}
				refused(t, m, jetstream.ErrMsgAlreadyAckd)
				time.Sleep(time.Minute) // without renewals
				return errBroken
			}, noLimits)(m)
			if diff := gocmp.Diff([]string{"500ms " + name}, m.heard()); diff != "" {
				t.Error(diff)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // too late: the outcome is the limit's
		m := newFakeMsg(1)
		var late sync.WaitGroup
		late.Add(1)
		handler(consumerWith(nil), func(_ context.Context, m jetstream.Msg) error {
			defer late.Done()
			time.Sleep(5 * time.Second) // deaf
			refused(t, m, jetstream.ErrMsgAlreadyAckd)
			return nil
		}, limited(timeout.Config{Idle: 250 * time.Millisecond, Grace: 250 * time.Millisecond}))(m)
		late.Wait()
		if diff := gocmp.Diff([]string{"500ms nak 250ms"}, m.heard()); diff != "" {
			t.Error(diff)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the lease is lost
		m := newFakeMsg(1)
		m.fail = func(string) error { return errBroken }
		handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
			<-ctx.Done()
			refused(t, m, lease.ErrLost)
			return nil
		}, noLimits)(m)
	})
}

// A slow detail has no text before long.
type slow struct{}

func (slow) String() string { time.Sleep(time.Minute); return "" }

// SPEC 13.5: a nak whose text takes until the lease has ended is not sent. It would apply to the next delivery.
func TestNoOutcomeAfterTheLease(t *testing.T) {
	short := consumerWith(func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second })
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			m := newFakeMsg(1)
			m.fail = func(what string) error {
				if what == "in progress" {
					return errBroken
				}
				return nil
			}
			handler(short, func(ctx context.Context, m jetstream.Msg) error {
				heartbeat.BeatWith(ctx, slow{})
				<-ctx.Done()
				return nil
			}, limited(timeout.Config{Total: 1600 * time.Millisecond, Grace: -1}))(m)
			time.Sleep(time.Hour)
			if heard := m.heard(); heard != nil {
				t.Fatal(heard)
			}
		})
	}
}

// Guarantee 4: an ack of the function that fails is no outcome, and InProgress is a heartbeat.
func TestFunctionFailsToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(what string) error {
			if what == "ack" {
				return errBroken
			}
			return nil
		}
		handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
			for range 9 {
				time.Sleep(time.Second)
				if err := errors.Join(m.InProgress(), ctx.Err()); err != nil {
					t.Error(err)
				}
				if err := m.Ack(); !errors.Is(err, errBroken) {
					t.Error(err)
				}
			}
			return nil
		}, limited(timeout.Config{Idle: 1100 * time.Millisecond}))(m)
		if diff := gocmp.Diff([]string{"5s in progress", "9s double ack"}, m.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// Guarantees 3 and 4: one thing is sent at a time, and nothing after the outcome.
func TestOneAtATime(t *testing.T) {
	for name, test := range map[string]struct {
		fail  func(what string, try int) error
		fn    func(context.Context, jetstream.Msg) error
		ends  time.Duration
		want  []string
		tries int // but for renewals
	}{
		"a function that hangs in an ack of its own holds up nobody": {
			fail: func(what string, _ int) error {
				if what == "double ack" {
					return errNoAnswer
				}
				return nil
			},
			fn: func(_ context.Context, m jetstream.Msg) error {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				return m.DoubleAck(ctx)
			}, ends: 25 * time.Second, tries: 1,
		},
		"the outcome waits for an ack of the function's own": {
			fail: func(_ string, try int) error {
				if try == 1 {
					return errNoAnswer
				}
				return nil
			},
			fn: func(_ context.Context, m jetstream.Msg) error {
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
					defer cancel()
					_ = m.DoubleAck(ctx)
				}()
				synctest.Wait()
				return nil
			}, ends: 8 * time.Second, want: []string{"8s double ack"}, tries: 2,
		},
		"a renewal that is on its way is the last": {
			fail: func(what string, _ int) error {
				time.Sleep(map[bool]time.Duration{true: 200 * time.Millisecond, false: 12 * time.Second}[what == "in progress"])
				return nil
			},
			fn: func(_ context.Context, m jetstream.Msg) error {
				for range 5 {
					time.Sleep(1020 * time.Millisecond)
					_ = m.InProgress()
				}
				return errBroken
			}, ends: 17200 * time.Millisecond, want: []string{"5.2s in progress", "17.2s nak 1s"}, tries: 1,
		},
		"what the function says beside the outcome is not sent after it": {
			fail: func(what string, _ int) error {
				if what != "in progress" {
					time.Sleep(3 * time.Second)
					return errBroken
				}
				return nil
			},
			fn: func(ctx context.Context, m jetstream.Msg) error {
				<-ctx.Done()
				time.Sleep(2 * time.Second) // the nak is sent meanwhile
				var late sync.WaitGroup
				for range 1000 {
					late.Go(func() { _ = m.Nak() })
				}
				late.Wait()
				return nil
			}, ends: 6 * time.Second, tries: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFakeMsg(1)
				tries := 0
				m.fail = func(what string) error {
					if what != "in progress" {
						tries++
					}
					return test.fail(what, tries)
				}
				handler(consumerWith(nil), test.fn, limited(timeout.Config{Idle: 2 * time.Second, Grace: time.Second}))(m)
				ends := time.Since(m.begun)
				time.Sleep(2 * time.Hour)
				if diff := gocmp.Diff(test.want, m.heard()); diff != "" || ends != test.ends || tries != test.tries {
					t.Errorf("ended at %v after %d tries: %s", ends, tries, diff)
				}
			})
		})
	}
}
