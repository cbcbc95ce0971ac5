package natsworker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

var noLimits = natsworker.WithOptions(timeout.Config{})

// Guarantees 1 and 2: what is sent of a delivery and when, and when its function is stopped, to the nanosecond.
func TestLease(t *testing.T) {
	const hour = time.Hour
	renewed := func(until int, last ...string) (want []string) {
		for s := 1; s <= until; s += 5 {
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
		// The message is kept from a second on, however silent the function is, and up to the end of the grace.
		"a function that sleeps":             {take: 33 * time.Second, want: renewed(31, "33s double ack")},
		"one that is done just before":       {take: time.Second - 1, want: []string{"999.999999ms double ack"}},
		"a stuck one, until its idle limit":  {limits: timeout.Config{Idle: 12 * time.Second}, take: hour, want: renewed(11, "12s nak")},
		"a deaf one, until its grace":        {limits: timeout.Config{Idle: 8 * time.Second, Grace: 4 * time.Second}, take: hour, deaf: true, want: renewed(11, "12s nak 4s")},
		"a short AckWait":                    {change: ackWait(3 * time.Second), take: 1250 * time.Millisecond, want: []string{"500ms in progress", "1s in progress", "1.25s double ack"}},
		"no AckWait is the server's default": {change: ackWait(0), take: 7 * time.Second, want: renewed(6, "7s double ack")},
		"the shortest BackOff": {change: func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{time.Minute, 3 * time.Second} }, take: 750 * time.Millisecond,
			want: []string{"500ms in progress", "750ms double ack"}},
		// It is lost five sixths after the last renewal was sent, and nothing is sent any more.
		"nothing can be sent":               {fail: failsIn(0, hour, errBroken), take: hour, lost: 25 * time.Second, want: []string{}},
		"not after the first":               {fail: failsIn(2*time.Second, hour, errBroken), take: hour, lost: 26 * time.Second, want: renewed(1)},
		"not after the second":              {fail: failsIn(7*time.Second, hour, errBroken), take: hour, lost: 31 * time.Second, want: renewed(6)},
		"from the first moment":             {fail: failsIn(time.Second, hour, errBroken), take: hour, lost: 25 * time.Second, want: []string{}},
		"for good, which is not worth more": {fail: failsIn(2*time.Second, hour, nats.ErrConnectionClosed), take: hour, lost: 26 * time.Second, want: renewed(1), tries: 2},
		"counted from when it was sent, not from its answer": {fail: func(what string, at time.Duration) error {
			if at > time.Second {
				return errBroken
			}
			time.Sleep(4 * time.Second)
			return nil
		}, take: hour, lost: 26 * time.Second, want: []string{"5s in progress"}},
		// A renewal that fails is sent again soon.
		"a renewal is repeated": {fail: failsIn(6*time.Second, 16*time.Second, errBroken), take: 23 * time.Second,
			want: []string{"1s in progress", "16s in progress", "21s in progress", "23s double ack"}},
		// The bound on an outage in the package documentation: three fifths of the lease, 18 s of 30, cost nothing.
		"an outage of 3/5 before the first renewal":  {fail: failsIn(time.Second-1, 19*time.Second-1, errBroken), take: hour},
		"an outage of 3/5 just before a renewal":     {fail: failsIn(11*time.Second-1, 29*time.Second-1, errBroken), take: hour},
		"an outage of 7/10 just before a renewal":    {fail: failsIn(11*time.Second-1, 32*time.Second-1, errBroken), take: hour, lost: 31 * time.Second},
		"an outage of nearly 5/6 just after renewal": {fail: failsIn(11*time.Second+1, 35*time.Second, errBroken), take: hour},
		"an outage of 5/6 just after a renewal":      {fail: failsIn(11*time.Second+1, 36*time.Second+1, errBroken), take: hour, lost: 36 * time.Second},
		// An ack without an answer is repeated for as long as the message is ours: each try takes a sixth of the lease, and
		// the pause after it 250 ms. A nak is not: the second might be about somebody else's delivery.
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
				natsworker.Handler(consumerWith(test.change), func(ctx context.Context, _ jetstream.Msg) error {
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
				}, natsworker.WithOptions(test.limits))(m)
				ends := time.Since(m.begun)
				time.Sleep(2 * hour) // nothing comes later
				if diff := cmp.Diff(test.want, append([]string{}, m.heard()...)); diff != "" && test.want != nil {
					t.Error(diff)
				}
				if told != test.lost || test.ends > 0 && ends != test.ends || test.tries > 0 && tries != test.tries {
					t.Errorf("lost at %v, ended at %v, after %d tries", told, ends, tries)
				}
			})
		})
	}
}

// Guarantee 2: in Run the lease counts from the request for the message. The server sends it at
// some time after that, and the message may be on its way for long.
func TestLeaseCountsFromThePull(t *testing.T) {
	for name, test := range map[string]struct {
		onItsWay time.Duration
		begun    bool
		want     []string
	}{
		"a little":               {500 * time.Millisecond, true, []string{"1s in progress", "6s in progress", "6.5s double ack"}},
		"beyond its renewal":     {2 * time.Second, true, []string{"2s in progress", "6.5s double ack"}},
		"nearly all of its time": {25*time.Second - 1, true, []string{"24.999999999s in progress", "25s double ack"}},
		"all of its time":        {25 * time.Second, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerWith(nil)
				c.onItsWay = test.onItsWay
				m := newFakeMsg(1)
				c.messages <- m
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				begun := false
				if err := natsworker.Run(ctx, c, 1, func(ctx context.Context, _ jetstream.Msg) error {
					begun = true
					synctest.Wait()
					time.Sleep(max(6500*time.Millisecond-test.onItsWay, 1))
					return ctx.Err()
				}, noLimits); err != nil {
					t.Error(err)
				}
				if begun != test.begun {
					t.Errorf("begun: %v", begun)
				}
				if diff := cmp.Diff(test.want, m.heard()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Guarantee 4: an acknowledgement of the function's own counts, once; then, and when the
// function has been stopped, nothing goes out any more.
func TestFunctionSettlesItsMessage(t *testing.T) {
	for name, test := range map[string]struct {
		say  func(context.Context, jetstream.Msg) error
		want string
	}{
		"Ack":            {func(_ context.Context, m jetstream.Msg) error { return m.Ack() }, "500ms ack"},
		"DoubleAck":      {func(ctx context.Context, m jetstream.Msg) error { return m.DoubleAck(ctx) }, "500ms double ack"},
		"Nak":            {func(_ context.Context, m jetstream.Msg) error { return m.Nak() }, "500ms nak"},
		"NakWithDelay":   {func(_ context.Context, m jetstream.Msg) error { return m.NakWithDelay(time.Second) }, "500ms nak 1s"},
		"Term":           {func(_ context.Context, m jetstream.Msg) error { return m.Term() }, "500ms term"},
		"TermWithReason": {func(_ context.Context, m jetstream.Msg) error { return m.TermWithReason("no") }, "500ms term no"},
	} {
		for ends, end := range map[string]error{"done": nil, "failed": errBroken} {
			t.Run(name+", "+ends, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newFakeMsg(1)
					var again []error
					natsworker.Handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
						time.Sleep(500 * time.Millisecond)
						if err := test.say(ctx, m); err != nil {
							t.Error(err)
						}
						again = []error{m.Ack(), m.DoubleAck(ctx), m.Nak(), m.NakWithDelay(1), m.Term(), m.TermWithReason("x"), m.InProgress()}
						time.Sleep(time.Minute) // without renewals
						return end
					}, noLimits)(m)
					for i, err := range again {
						if !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
							t.Errorf("%d: %v", i, err)
						}
					}
					if diff := cmp.Diff([]string{test.want}, m.heard()); diff != "" {
						t.Error(diff)
					}
				})
			})
			t.Run(name+", too late, "+ends, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newFakeMsg(1)
					late := make(chan error, 1)
					natsworker.Handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
						time.Sleep(5 * time.Second) // deaf
						late <- test.say(context.Background(), m)
						return end
					}, natsworker.WithOptions(timeout.Config{Idle: 250 * time.Millisecond, Grace: 250 * time.Millisecond}))(m)
					if err := <-late; !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
						t.Error(err)
					}
					if diff := cmp.Diff([]string{"500ms nak 250ms"}, m.heard()); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

// An ack of the function that fails is no outcome.
func TestFunctionFailsToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(what string) error {
			if what == "ack" {
				return errBroken
			}
			return nil
		}
		natsworker.Handler(consumerWith(nil), func(_ context.Context, m jetstream.Msg) error {
			if err := m.Ack(); !errors.Is(err, errBroken) {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
			return nil
		}, noLimits)(m)
		if diff := cmp.Diff([]string{"1s in progress", "6s in progress", "10s double ack"}, m.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// A function that hangs in an ack of its own holds up nobody, and nothing is sent beside it.
func TestAbandonedWithinItsAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(what string) error {
			if what == "double ack" {
				return errNoAnswer
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		natsworker.Handler(consumerWith(nil), func(_ context.Context, m jetstream.Msg) error {
			return m.DoubleAck(ctx)
		}, natsworker.WithOptions(timeout.Config{Idle: time.Second, Grace: time.Second}))(m)
		if took := time.Since(m.begun); took != 25*time.Second || len(m.heard()) != 0 {
			t.Errorf("took %v, said %q", took, m.heard())
		}
		<-ctx.Done()
	})
}

// While an ack of the function itself is on its way, no other is sent.
func TestOneAckAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		tries := 0
		m.fail = func(string) error {
			if tries++; tries == 1 {
				return errNoAnswer
			}
			return nil
		}
		begun := make(chan struct{})
		natsworker.Handler(consumerWith(nil), func(_ context.Context, m jetstream.Msg) error {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
				defer cancel()
				close(begun)
				if err := m.DoubleAck(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}()
			<-begun
			synctest.Wait()
			return nil
		}, noLimits)(m)
		if diff := cmp.Diff([]string{"8s double ack"}, m.heard()); diff != "" || tries != 2 {
			t.Errorf("%d tries: %s", tries, diff)
		}
	})
}

// A renewal that is on its way when the function returns is the last: after a nak another would
// be about the next delivery.
func TestNoRenewalAfterTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(what string) error {
			if what == "in progress" {
				time.Sleep(4 * time.Second)
			} else {
				time.Sleep(12 * time.Second)
			}
			return nil
		}
		natsworker.Handler(consumerWith(nil), func(context.Context, jetstream.Msg) error {
			time.Sleep(7 * time.Second)
			return errBroken
		}, noLimits)(m)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"5s in progress", "10s in progress", "22s nak 1s"}, m.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// InProgress is a heartbeat, and what a function says after its lease is over is refused.
func TestInProgressIsABeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		natsworker.Handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
			for range 9 {
				time.Sleep(time.Second)
				if err := m.InProgress(); err != nil {
					t.Error(err)
				}
			}
			if n := heartbeat.FromContext(ctx).Count(); n != 9 {
				t.Errorf("%d beats", n)
			}
			return ctx.Err()
		}, natsworker.WithOptions(timeout.Config{Idle: 1100 * time.Millisecond}))(m)
		if diff := cmp.Diff([]string{"1s in progress", "6s in progress", "9s double ack"}, m.heard()); diff != "" {
			t.Error(diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(string) error { return errBroken }
		natsworker.Handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
			<-ctx.Done()
			for i, err := range []error{m.InProgress(), m.Ack(), m.DoubleAck(context.Background())} {
				if !errors.Is(err, natsworker.ErrLeaseLost) {
					t.Errorf("%d: %v", i, err)
				}
			}
			return nil
		}, noLimits)(m)
	})
}

// Guarantees 3 and 4: what a function says itself while the outcome is on its way is not sent after it.
func TestOwnAckBesideTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.brief = true
		tries := 0
		m.fail = func(what string) error {
			if what == "in progress" {
				return nil
			}
			tries++
			time.Sleep(3 * time.Second)
			return errBroken
		}
		var late sync.WaitGroup
		natsworker.Handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
			<-ctx.Done()
			time.Sleep(2 * time.Second) // the nak is sent meanwhile
			for range 1000 {
				late.Go(func() {
					if err := m.Nak(); !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
						t.Error(err)
					}
				})
			}
			return nil
		}, natsworker.WithOptions(timeout.Config{Idle: time.Second, Grace: time.Second}))(m)
		late.Wait()
		if tries != 1 {
			t.Errorf("%d naks", tries)
		}
	})
}
