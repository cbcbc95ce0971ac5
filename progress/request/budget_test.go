package request_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 18.4: a request says what is really left of its own limits and of those around it when it is sent.
func TestBudgetOf(t *testing.T) {
	const s = time.Second
	limits := request.Limits{Timeout: 30 * s, MaxTotal: 30 * time.Minute, ResetOnProgress: true}
	for _, tc := range []struct {
		name   string
		limits request.Limits
		within func(ctx context.Context, send func(context.Context) error) error // nil is nothing
		want   policy.Budget
	}{
		{"its own", limits, nil, policy.Budget{Left: 30 * time.Minute, Idle: 30 * s}},
		{"no cap", request.Limits{Timeout: 30 * s, ResetOnProgress: true}, nil, policy.Budget{Idle: 30 * s}},
		{"not renewed", request.Limits{Timeout: 30 * s, MaxTotal: time.Minute}, nil, policy.Budget{Left: 30 * s}},
		{"not renewed, nor capped", request.Limits{Timeout: 30 * s}, nil, policy.Budget{Left: 30 * s}},
		{"none", request.Limits{}, nil, policy.Budget{}},
		{"none, within a deadline", request.Limits{}, func(ctx context.Context, send func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, 20*s)
			defer cancel()
			return send(ctx)
		}, policy.Budget{Left: 20 * s}},
		{"within a tool, after a while", limits, under(timeout.Config{Total: time.Minute, Idle: 20 * s}), policy.Budget{Left: 45 * s, Idle: 20 * s}},
		{"not renewed, within a tool", request.Limits{Timeout: 40 * s}, under(timeout.Config{Total: time.Minute, Idle: 20 * s}), policy.Budget{Left: 20 * s}},
		{"within a tool that is longer", limits, under(timeout.Config{Total: time.Hour, Idle: time.Minute}), policy.Budget{Left: 30 * time.Minute, Idle: 30 * s}},
		{"within a hold", limits, func(ctx context.Context, send func(context.Context) error) error {
			return timeout.Run(ctx, func(ctx context.Context) error {
				defer heartbeat.Hold(ctx)()
				return send(ctx)
			}, timeout.Config{Total: time.Minute, Idle: 20 * s})
		}, policy.Budget{Left: time.Minute, Idle: 30 * s}},
		{"within what is only observed", limits, func(ctx context.Context, send func(context.Context) error) error {
			return timeout.Run(ctx, send, timeout.Config{Total: time.Minute, Idle: 20 * s}, timeout.WithObserveOnly())
		}, policy.Budget{Left: 30 * time.Minute, Idle: 30 * s}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got policy.Budget
				send := func(ctx context.Context) error {
					_, err := request.Do(ctx, request.New(only(tc.limits)), request.Call{Method: "tools/call"}, func(ctx context.Context, token string) (int, error) {
						got = request.BudgetOf(ctx, token != "")
						return 0, nil
					})
					return err
				}
				if tc.within == nil {
					tc.within = func(ctx context.Context, send func(context.Context) error) error { return send(ctx) }
				}
				if err := tc.within(t.Context(), send); err != nil || got != tc.want {
					t.Errorf("%v, %v, want %v", got, err, tc.want)
				}
			})
		})
	}
}

// under sends 15 s after the start of a tool.
func under(limits timeout.Config) func(ctx context.Context, send func(context.Context) error) error {
	return func(ctx context.Context, send func(context.Context) error) error {
		return timeout.Run(ctx, func(ctx context.Context) error {
			time.Sleep(15 * time.Second)
			return send(ctx)
		}, limits)
	}
}

func ExampleBudgetOf() {
	limits := request.New(&request.Options{PerMethod: map[string]request.Limits{"tools/call": {Timeout: 30 * time.Second, ResetOnProgress: true}}})
	_, _ = request.Do(context.Background(), limits, request.Call{Method: "tools/call"}, func(ctx context.Context, token string) (string, error) {
		meta := map[string]any{"progressToken": token, policy.BudgetKey: request.BudgetOf(ctx, token != "").Object()}
		fmt.Println(meta[policy.BudgetKey])
		return "the answer", nil
	})
	// Output: map[idleMs:30000]
}
