package temporalworker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

// SPEC 13.1: limits from the activity's own options, narrowed by a policy.
func TestLimits(t *testing.T) {
	type limits = timeout.Config
	named := func(tool policy.Tool) *policy.Policy {
		return &policy.Policy{Tools: map[string]policy.Tool{"Work": tool}}
	}
	replaced := named(policy.Tool{Limits: &limits{Idle: time.Hour}})
	replaced.Replace(named(policy.Tool{Limits: &limits{Idle: time.Minute}, MaxTotal: 3 * time.Minute}))
	is := func(total, idle, grace time.Duration) limits {
		return limits{Total: total, Idle: idle, Grace: grace}
	}
	env := func(key, value string) func(string) (string, bool) {
		return func(k string) (string, bool) { return value, k == key }
	}
	for _, tt := range []struct {
		name  string
		beats time.Duration // HeartbeatTimeout
		left  time.Duration
		opts  temporalworker.Options
		want  limits
	}{
		{"neither", 0, 0, defaults, is(0, 0, 7*time.Second)},
		{"a HeartbeatTimeout", time.Second, 0, defaults, is(0, time.Second, 7*time.Second)},
		{"a short deadline", time.Second, 2 * time.Second, defaults, is(1800*time.Millisecond, time.Second, 175*time.Millisecond)},
		{"a long deadline", 30 * time.Second, time.Hour, defaults, is(time.Hour-8*time.Second, 30*time.Second, 7*time.Second)},
		{"a HeartbeatTimeout beyond the deadline", time.Minute, 10 * time.Second, defaults, is(9*time.Second, 9*time.Second, 875*time.Millisecond)},
		{"a Config with an idle limit", time.Second, time.Hour, limited(limits{Idle: time.Minute}), is(time.Hour-8*time.Second, time.Minute, 7*time.Second)},
		{"a Config with a shorter total", time.Second, time.Hour, limited(limits{Total: time.Minute}), is(time.Minute, time.Second, 7*time.Second)},
		{"a Config with a longer total", time.Second, time.Minute, limited(limits{Total: time.Hour}), is(54*time.Second, time.Second, 5250*time.Millisecond)},
		{"a Config with a grace", 0, time.Hour, limited(limits{Grace: time.Minute, Total: 30 * time.Minute}), is(30*time.Minute, 0, time.Minute)},
		{"a Config without grace", 0, time.Hour, limited(limits{Grace: -1, Idle: time.Minute}), is(time.Hour-8*time.Second, time.Minute, -1)},
		{"no limits", time.Second, 0, limited(limits{}), is(0, time.Second, 7*time.Second)},
		{"a policy for this one", time.Second, time.Hour, temporalworker.Options{Policy: named(policy.Tool{Limits: &limits{Idle: time.Minute, Total: 2 * time.Minute}})},
			is(2*time.Minute, time.Minute, 7*time.Second)},
		{"a policy that was replaced, SPEC 2.12", time.Second, time.Hour, temporalworker.Options{Policy: replaced}, is(3*time.Minute, time.Minute, 7*time.Second)},
		{"a ceiling", time.Second, time.Hour, temporalworker.Options{Policy: named(policy.Tool{MaxTotal: time.Minute})}, is(time.Minute, time.Second, 7*time.Second)},
		{"a variable of the activity", time.Second, time.Hour, temporalworker.Options{Policy: &policy.Policy{
			Tools: map[string]policy.Tool{"Work": {Env: "WORK"}}, Lookup: env("WORK_TIMEOUT_MS", "5000")}}, is(5*time.Second, time.Second, 7*time.Second)},
		{"a variable of MCP hosts", time.Second, time.Hour, temporalworker.Options{Policy: &policy.Policy{Lookup: env("MCP_TIMEOUT", "5")}},
			is(time.Hour-8*time.Second, time.Second, 7*time.Second)},
		{"a variable that the policy names", time.Second, time.Hour, temporalworker.Options{Policy: &policy.Policy{IdleEnv: "WORKER_IDLE", Lookup: env("WORKER_IDLE", "5")}},
			is(time.Hour-8*time.Second, 5*time.Second, 7*time.Second)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: tt.beats}, Left: tt.left}
				var got limits
				var log bytes.Buffer
				tt.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
				if _, err := a.run(func(ctx context.Context, _ record) (any, error) {
					got = timeout.FromContext(ctx).Snapshot().Limits
					return nil, nil
				}, tt.opts); err != nil || log.Len() > 0 {
					t.Fatalf("%v; %s", err, &log)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("limits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestBadVariable(t *testing.T) {
	a := &attempt{}
	_, err := a.run(func(context.Context, record) (any, error) {
		t.Error("the activity was called")
		return nil, nil
	}, temporalworker.Options{Policy: &policy.Policy{Tools: map[string]policy.Tool{"Work": {Env: "WORK"}},
		Lookup: func(string) (string, bool) { return "soon", true }}})
	var bad *timeout.ConfigError
	if !errors.As(err, &bad) || bad.Key != "WORK_TIMEOUT_MS" || bad.Value != "soon" {
		t.Errorf("got %v", err)
	}
}

// SPEC 3.5, 13.1: a recorded detail renews the idle limit, and the activity is stopped at that, not
// before; the lease is kept all the same.
func TestBoundaries(t *testing.T) {
	const idle = 10 * time.Second
	for _, tt := range []struct {
		name  string
		pause time.Duration
		beat  func(ctx context.Context, record record)
		alive bool
	}{
		{"recorded just in time", idle - 1, func(ctx context.Context, record record) { record(ctx, 1) }, true},
		{"recorded without details just in time", idle - 1, func(ctx context.Context, record record) { record(ctx) }, true},
		{"a beat just in time", idle - 1, func(ctx context.Context, _ record) { heartbeat.Beat(ctx) }, true},
		{"recorded too late", idle, func(ctx context.Context, record record) { record(ctx, 1) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: idle}, Left: time.Hour}
				_, err := a.run(func(ctx context.Context, record record) (any, error) {
					for range 5 {
						select {
						case <-time.After(tt.pause):
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						tt.beat(ctx, record)
					}
					return nil, nil
				}, defaults)
				took := time.Since(a.start)
				if tt.alive && (err != nil || took != 5*tt.pause) {
					t.Errorf("after %v: %v", took, err)
				}
				if o, ok := temporalworker.OutcomeOf(err); !tt.alive && (!ok || o.Kind != "idle" || took != idle) {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// Of a policy that only observes, nothing stops, and the service sees what it would see without
// the interceptor: a heartbeat when the activity beats, and none when it does not.
func TestObserveOnly(t *testing.T) {
	for name, p := range map[string]*policy.Policy{
		"policy":   {ObserveOnly: true},
		"activity": {Tools: map[string]policy.Tool{"Work": {ObserveOnly: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := &attempt{Info: activity.Info{HeartbeatTimeout: 3 * time.Second}, Left: time.Hour}
				_, err := a.run(func(ctx context.Context, _ record) (any, error) {
					time.Sleep(2500 * time.Millisecond)
					heartbeat.Beat(ctx)
					time.Sleep(10 * time.Second)
					return nil, ctx.Err()
				}, temporalworker.Options{Policy: p})
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff([]sent{{3 * time.Second, ""}}, a.heartbeats()); diff != "" {
					t.Errorf("heartbeats (-want +got):\n%s", diff)
				}
			})
		})
	}
}
