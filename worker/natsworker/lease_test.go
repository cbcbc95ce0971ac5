package natsworker_test

import (
	"context"
	"errors"
	"sync/atomic"
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

// Guarantee 1: the message is kept from a sixth of the lease on, however silent the function
// is, and up to the end of the grace.
func TestLeaseIsKept(t *testing.T) {
	tests := map[string]struct {
		change func(*jetstream.ConsumerConfig)
		limits timeout.Config
		fn     func(context.Context, jetstream.Msg) error
		want   []string
	}{
		"a function that sleeps": {
			fn: func(context.Context, jetstream.Msg) error { time.Sleep(33 * time.Second); return nil },
			want: []string{"5s in progress", "10s in progress", "15s in progress", "20s in progress", "25s in progress",
				"30s in progress", "33s double ack"},
		},
		"one that is done just before": {
			fn:   func(context.Context, jetstream.Msg) error { time.Sleep(5*time.Second - 1); return nil },
			want: []string{"4.999999999s double ack"},
		},
		"a stuck one, until its idle limit": {
			limits: timeout.Config{Idle: 12 * time.Second}, fn: hangs(nil),
			want: []string{"5s in progress", "10s in progress", "12s nak"},
		},
		"a deaf one, until its grace is over": {
			limits: timeout.Config{Idle: 8 * time.Second, Grace: 4 * time.Second}, fn: deaf,
			want: []string{"5s in progress", "10s in progress", "12s nak 4s"},
		},
		"a short AckWait": {
			change: func(c *jetstream.ConsumerConfig) { c.AckWait = 3 * time.Second },
			fn:     func(context.Context, jetstream.Msg) error { time.Sleep(1250 * time.Millisecond); return nil },
			want:   []string{"500ms in progress", "1s in progress", "1.25s double ack"},
		},
		"no AckWait is the server's default": {
			change: func(c *jetstream.ConsumerConfig) { c.AckWait = 0 },
			fn:     func(context.Context, jetstream.Msg) error { time.Sleep(6 * time.Second); return nil },
			want:   []string{"5s in progress", "6s double ack"},
		},
		"the shortest BackOff": {
			change: func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{time.Minute, 6 * time.Second} },
			fn:     func(context.Context, jetstream.Msg) error { time.Sleep(1500 * time.Millisecond); return nil },
			want:   []string{"1s in progress", "1.5s double ack"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFakeMsg(1)
				natsworker.Handler(consumerWith(test.change), test.fn, natsworker.WithOptions(test.limits))(m)
				time.Sleep(time.Hour)
				if diff := cmp.Diff(test.want, m.heard()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// Guarantee 2: a function whose message cannot be kept is stopped when five sixths of the lease
// are over, not before, and nothing is sent any more.
func TestLeaseIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		failFrom time.Duration // InProgress fails from then on
		lostAt   time.Duration
		said     []string
		err      error
	}{
		"from the start":             {0, 25 * time.Second, nil, errBroken},
		"after the first":            {7 * time.Second, 30 * time.Second, []string{"5s in progress"}, errBroken},
		"after the second":           {12 * time.Second, 35 * time.Second, []string{"5s in progress", "10s in progress"}, errBroken},
		"at the first moment":        {5 * time.Second, 25 * time.Second, nil, errBroken},
		"for good, not worth trying": {7 * time.Second, 30 * time.Second, []string{"5s in progress"}, nats.ErrConnectionClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFakeMsg(1)
				m.fail = func(string) error {
					if time.Since(m.begun) >= test.failFrom {
						return test.err
					}
					return nil
				}
				var cause error
				alive := false
				natsworker.Handler(consumerWith(nil), func(ctx context.Context, _ jetstream.Msg) error {
					time.Sleep(test.lostAt - 1)
					synctest.Wait()
					alive = ctx.Err() == nil
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					if at := time.Since(m.begun); at != test.lostAt {
						t.Errorf("lost at %v, want %v", at, test.lostAt)
					}
					cause = context.Cause(ctx)
					return nil
				}, noLimits)(m)
				if !alive {
					t.Error("lost a nanosecond early")
				}
				if !errors.Is(cause, natsworker.ErrLeaseLost) {
					t.Errorf("the cause is %#v", cause)
				}
				if diff := cmp.Diff(test.said, m.heard()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// A renewal that fails is sent again soon, and the lease counts from when it was sent.
func TestRenewalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(string) error {
			if at := time.Since(m.begun); 10*time.Second <= at && at < 20*time.Second {
				return errBroken
			}
			return nil
		}
		natsworker.Handler(consumerWith(nil), func(ctx context.Context, _ jetstream.Msg) error {
			time.Sleep(31 * time.Second)
			return ctx.Err()
		}, noLimits)(m)
		if diff := cmp.Diff([]string{"5s in progress", "20s in progress", "25s in progress", "30s in progress", "31s double ack"}, m.heard()); diff != "" {
			t.Error(diff)
		}
	})
}

// The bound on an outage in the package documentation: three fifths of the lease, which is 18 s
// of 30, costs nothing, whenever it begins. Five sixths since the last renewal is the end of it.
func TestOutage(t *testing.T) {
	for name, test := range map[string]struct {
		from, lasts time.Duration
		lost        bool
	}{
		"just before a renewal, 3/5":       {10*time.Second - 1, 18 * time.Second, false},
		"just before a renewal, 7/10":      {10*time.Second - 1, 21 * time.Second, true},
		"before the first renewal, 3/5":    {5*time.Second - 1, 18 * time.Second, false},
		"before the first renewal, 7/10":   {5*time.Second - 1, 21 * time.Second, true},
		"just after a renewal, nearly 5/6": {10*time.Second + 1, 24 * time.Second, false},
		"just after a renewal, 5/6":        {10*time.Second + 1, 25 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFakeMsg(1)
				m.fail = func(string) error {
					if at := time.Since(m.begun); test.from <= at && at < test.from+test.lasts {
						return errBroken
					}
					return nil
				}
				natsworker.Handler(consumerWith(nil), func(ctx context.Context, _ jetstream.Msg) error {
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour + 1):
					}
					if lost := ctx.Err() != nil; lost != test.lost {
						t.Errorf("lost is %v after %v", lost, time.Since(m.begun))
					}
					return nil
				}, noLimits)(m)
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
		"a little":               {2 * time.Second, true, []string{"5s in progress", "6s double ack"}},
		"beyond its renewal":     {5500 * time.Millisecond, true, []string{"5.5s in progress", "6s double ack"}},
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
					time.Sleep(max(6*time.Second-test.onItsWay, 1))
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

// The lease counts from when a renewal was sent, not from its answer: the server may have had
// it at any moment between.
func TestLeaseCountsFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumerWith(nil)
		m := newFakeMsg(1)
		m.fail = func(string) error {
			if at := time.Since(m.begun); at > 5*time.Second {
				return errBroken
			}
			time.Sleep(4 * time.Second)
			return nil
		}
		natsworker.Handler(c, func(ctx context.Context, _ jetstream.Msg) error {
			<-ctx.Done()
			if at := time.Since(m.begun); at != 30*time.Second {
				t.Errorf("lost at %v, want 25 s after the renewal at 5 s was sent", at)
			}
			return nil
		}, noLimits)(m)
	})
}

// Guarantee 2: a verdict that comes after the lease, here because no renewal could be sent,
// is not sent, even if the function has not heeded its context.
func TestNothingIsSaidAfterTheLease(t *testing.T) {
	for name, result := range map[string]error{"done": nil, "failed": errBroken, "rejected": natsworker.Reject(errBroken)} {
		for _, at := range []time.Duration{25*time.Second - 1, 25 * time.Second} {
			t.Run(name+" "+at.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newFakeMsg(1)
					m.fail = func(what string) error {
						if what == "in progress" {
							return errBroken
						}
						return nil
					}
					natsworker.Handler(consumerWith(nil), func(context.Context, jetstream.Msg) error {
						time.Sleep(at)
						return result
					}, noLimits)(m)
					if late := at == 25*time.Second; (len(m.heard()) == 0) != late {
						t.Errorf("said: %q", m.heard())
					}
				})
			})
		}
	}
}

// An ack without an answer is repeated for as long as the message is ours. A nak is not: the
// second might be about somebody else's delivery.
func TestRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		result error
		tries  int32
		took   time.Duration
	}{
		// Each try takes a sixth of the 30 s and the pause after it 250 ms.
		"ack": {nil, 5, 25 * time.Second},
		"nak": {errBroken, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newFakeMsg(1)
				var tries atomic.Int32
				m.fail = func(string) error { tries.Add(1); return errNoAnswer }
				natsworker.Handler(consumerWith(nil), fails(test.result), noLimits)(m)
				if took := time.Since(m.begun); tries.Load() != test.tries || took != test.took {
					t.Errorf("%d tries in %v, want %d in %v", tries.Load(), took, test.tries, test.took)
				}
			})
		})
	}
}

// An attempt of an ack ends with the lease too.
func TestAckEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.fail = func(what string) error {
			if what == "in progress" {
				return errBroken
			}
			return errNoAnswer
		}
		natsworker.Handler(consumerWith(nil), func(context.Context, jetstream.Msg) error {
			time.Sleep(24 * time.Second)
			return nil
		}, noLimits)(m)
		if took := time.Since(m.begun); took != 25*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// Guarantee 4: an acknowledgement of the function's own counts, once; then, and when the
// function has been stopped, nothing goes out any more.
func TestFunctionSettlesItsMessage(t *testing.T) {
	for name, test := range map[string]struct {
		say  func(context.Context, jetstream.Msg) error
		want string
	}{
		"Ack":            {func(_ context.Context, m jetstream.Msg) error { return m.Ack() }, "1s ack"},
		"DoubleAck":      {func(ctx context.Context, m jetstream.Msg) error { return m.DoubleAck(ctx) }, "1s double ack"},
		"Nak":            {func(_ context.Context, m jetstream.Msg) error { return m.Nak() }, "1s nak"},
		"NakWithDelay":   {func(_ context.Context, m jetstream.Msg) error { return m.NakWithDelay(time.Second) }, "1s nak 1s"},
		"Term":           {func(_ context.Context, m jetstream.Msg) error { return m.Term() }, "1s term"},
		"TermWithReason": {func(_ context.Context, m jetstream.Msg) error { return m.TermWithReason("no") }, "1s term no"},
	} {
		for ends, end := range map[string]error{"done": nil, "failed": errBroken} {
			t.Run(name+", "+ends, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newFakeMsg(1)
					var again []error
					natsworker.Handler(consumerWith(nil), func(ctx context.Context, m jetstream.Msg) error {
						time.Sleep(time.Second)
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
					}, natsworker.WithOptions(timeout.Config{Idle: time.Second, Grace: time.Second}))(m)
					if err := <-late; !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
						t.Error(err)
					}
					if diff := cmp.Diff([]string{"2s nak 1s"}, m.heard()); diff != "" {
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
			time.Sleep(11 * time.Second)
			return nil
		}, noLimits)(m)
		if diff := cmp.Diff([]string{"5s in progress", "10s in progress", "11s double ack"}, m.heard()); diff != "" {
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
			time.Sleep(11 * time.Second)
			return errBroken
		}, noLimits)(m)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"9s in progress", "14s in progress", "26s nak 1s"}, m.heard()); diff != "" {
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
		if diff := cmp.Diff([]string{"5s in progress", "9s double ack"}, m.heard()); diff != "" {
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
