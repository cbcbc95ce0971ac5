package natsworker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"github.com/tooldeadline/tooldeadline/worker/natsworker"
)

// A message on a subject.
type onSubject struct {
	*fakeMsg
	subject string
}

func (m onSubject) Subject() string { return m.subject }

// SPEC 13.2: the limits of a message are those of the narrowest pattern that its subject matches, whose name its execution
// has.
func TestPolicy(t *testing.T) {
	idle := func(d time.Duration) policy.Tool { return policy.Tool{Limits: &timeout.Config{Idle: d}} }
	p := &policy.Policy{TotalEnv: "-", IdleEnv: "-", Tools: map[string]policy.Tool{
		"jobs.>": idle(1 * time.Second), "jobs.*.pdf": idle(2 * time.Second), "jobs.a.*": idle(3 * time.Second), "jobs.a.pdf": idle(4 * time.Second), "jobs.*": idle(5 * time.Second),
		"watched": {Limits: &timeout.Config{Idle: time.Second}, ObserveOnly: true},
	}}
	for _, row := range []struct {
		subject, name string
		idle          time.Duration
	}{
		{"jobs.a.pdf", "jobs.a.pdf", 4 * time.Second},
		{"jobs.b.pdf", "jobs.*.pdf", 2 * time.Second},
		{"jobs.a.png", "jobs.a.*", 3 * time.Second},
		{"jobs.b.png", "jobs.>", 1 * time.Second},
		{"jobs.a", "jobs.*", 5 * time.Second},
		{"jobs.a.b.c", "jobs.>", 1 * time.Second},
		{"jobs", "workers", 9 * time.Second},
		{"orders.a", "workers", 9 * time.Second},
		{"watched", "watched", time.Minute},
	} {
		t.Run(row.subject, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var name string
				var took time.Duration
				handler(consumerWith(nil), func(ctx context.Context, _ jetstream.Msg) error {
					begun := time.Now()
					name = timeout.FromContext(ctx).Snapshot().Tool
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					took = time.Since(begun)
					return nil
				}, natsworker.Options{Policy: p, Limits: &timeout.Config{Idle: 9 * time.Second}})(onSubject{newFakeMsg(1), row.subject})
				if name != row.name || took != row.idle {
					t.Errorf("%s, stopped after %v, want %s after %v", name, took, row.name, row.idle)
				}
			})
		})
	}
}

// A message that was published longer ago than the time between two renewals is renewed before its function begins, since
// a server that is restarted takes it for one that was delivered then.
func TestRenewedAtOnce(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		5*time.Second - 1: {"5s in progress", "7s double ack"},
		5 * time.Second:   {"0s in progress", "5s in progress", "7s double ack"},
		time.Hour:         {"0s in progress", "5s in progress", "7s double ack"},
		-time.Second:      {"0s in progress", "5s in progress", "7s double ack"}, // the clock of this machine is behind
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newFakeMsg(1)
			m.age = age
			handler(consumerWith(nil), func(context.Context, jetstream.Msg) error {
				if renewed := slices.Contains(m.heard(), "0s in progress"); renewed != (len(want) == 3) {
					t.Errorf("an age of %v: renewed before it begins: %v", age, renewed)
				}
				time.Sleep(7 * time.Second)
				return nil
			}, noLimits)(m)
			if got := m.heard(); !slices.Equal(got, want) {
				t.Errorf("an age of %v: got %q, want %q", age, got, want)
			}
		})
	}
}

// A message that was published long ago and cannot be renewed may be somebody else's: its function does not begin, and
// nothing is sent of it.
func TestOldMessageThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newFakeMsg(1)
		m.age, m.fail = time.Hour, func(string) error { return errBroken }
		handler(consumerWith(nil), func(context.Context, jetstream.Msg) error { t.Error("begun"); return nil }, noLimits)(m)
		time.Sleep(time.Hour)
		if got := m.heard(); len(got) > 0 {
			t.Errorf("said %q", got)
		}
	})
}

// A message that no pattern matches has the policy's Default where there are no Limits, and its ObserveOnly.
func TestPolicyOfOthers(t *testing.T) {
	for _, row := range []struct {
		limits  *timeout.Config
		observe bool
		want    time.Duration
	}{
		{nil, false, 3 * time.Second},
		{&timeout.Config{Idle: 9 * time.Second}, false, 9 * time.Second},
		{&timeout.Config{Idle: 9 * time.Second}, true, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &policy.Policy{TotalEnv: "-", IdleEnv: "-", Default: &timeout.Config{Idle: 3 * time.Second}, ObserveOnly: row.observe}
			begun := time.Now()
			handler(consumerWith(nil), func(ctx context.Context, _ jetstream.Msg) error {
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return nil
			}, natsworker.Options{Policy: p, Limits: row.limits})(newFakeMsg(1))
			if took := time.Since(begun); took != row.want {
				t.Errorf("stopped after %v, want %v", took, row.want)
			}
		})
	}
}

// A limit that cannot be read is an error at the start, and not the end of every message.
func TestPolicyThatCannotBeRead(t *testing.T) {
	p := &policy.Policy{Tools: map[string]policy.Tool{"jobs": {}}, Lookup: func(name string) (string, bool) { return "abc", name == "MCP_TIMEOUT" }}
	_, err := natsworker.Handler(consumerWith(nil), func(context.Context, jetstream.Msg) error { return nil }, natsworker.Options{Policy: p})
	if c := (*timeout.ConfigError)(nil); !errors.As(err, &c) || c.Key != "MCP_TIMEOUT" {
		t.Errorf("got %v", err)
	}
}
