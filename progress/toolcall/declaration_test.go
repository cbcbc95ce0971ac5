package toolcall_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 10.1: they are resolved from the policy, so that the environment's word shows.
func TestServerLimits(t *testing.T) {
	env := map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000"}
	var log bytes.Buffer
	p := &policy.Policy{
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		Default: &timeout.Config{Total: 30 * time.Minute, Idle: 2 * time.Minute},
		Tools: map[string]policy.Tool{
			"tlc_smoke":   {Limits: &timeout.Config{Total: 2 * time.Minute}, Env: "TLC_SMOKE"},
			"tlc_explore": {Limits: &timeout.Config{Total: 10 * time.Minute, Idle: time.Hour, Grace: time.Second}, MaxTotal: 30 * time.Minute},
			"watched":     {ObserveOnly: true},
			"unlimited":   {Limits: &timeout.Config{}, MaxTotal: -1},
			"no grace":    {Limits: &timeout.Config{Total: 1, Grace: -1}},
		},
		Lookup: func(key string) (string, bool) { v, ok := env[key]; return v, ok },
	}
	replaced := &policy.Policy{Tools: p.Tools}
	replaced.Replace(&policy.Policy{Default: &timeout.Config{Total: time.Minute}, Tools: map[string]policy.Tool{"tlc_explore": {MaxTotal: time.Hour}}})
	const grace, notes = timeout.DefaultGrace, 10 * time.Second
	for _, tt := range []struct {
		name   string
		server *toolcall.Settings
		tool   string
		want   policy.Declaration
	}{
		{"the default", &toolcall.Settings{Policy: p}, "", policy.Declaration{Total: 30 * time.Minute, Idle: 2 * time.Minute, Grace: grace, Progress: notes}},
		{"the environment", &toolcall.Settings{Policy: p}, "tlc_smoke", policy.Declaration{Total: 90 * time.Second, Grace: grace, Progress: notes}},
		{"requests have no say", &toolcall.Settings{Policy: p, Interval: time.Second}, "tlc_explore",
			policy.Declaration{Total: 10 * time.Minute, Idle: 10 * time.Minute, Grace: time.Second, Progress: time.Second}},
		{"no interval, SPEC 2.13", &toolcall.Settings{Policy: p, Interval: -1}, "tlc_smoke", policy.Declaration{Total: 90 * time.Second, Grace: grace, Progress: -1}},
		{"requests have a say", &toolcall.Settings{Policy: p, MetaTimeout: true}, "tlc_explore",
			policy.Declaration{Total: 10 * time.Minute, Idle: 10 * time.Minute, Grace: time.Second, Progress: notes, MaxRequested: 30 * time.Minute}},
		{"any say of a policy that was replaced, SPEC 2.12", &toolcall.Settings{Policy: replaced, MetaTimeout: true}, "tlc_explore",
			policy.Declaration{Total: time.Minute, Grace: grace, Progress: notes, MaxRequested: time.Hour}},
		{"any say", &toolcall.Settings{Policy: p, ArgumentTimeout: true}, "unlimited", policy.Declaration{Grace: grace, Progress: notes, MaxRequested: -1}},
		{"no grace", &toolcall.Settings{Policy: p}, "no grace", policy.Declaration{Total: 1, Grace: -1, Progress: notes}},
		{"observed", &toolcall.Settings{Policy: p}, "watched", policy.Declaration{Grace: grace, Progress: notes}},
		{"all observed", &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}, ObserveOnly: true}}, "x", policy.Declaration{Grace: grace, Progress: notes}},
		{"limits of all", &toolcall.Settings{Policy: p, Limits: &timeout.Config{Total: 3, Idle: 5}}, "tlc_smoke",
			policy.Declaration{Total: 3, Idle: 3, Grace: grace, Progress: notes}},
		{"limits of all, over which requests have no say", &toolcall.Settings{Policy: p, Limits: &timeout.Config{Total: 3}, MetaTimeout: true, ArgumentTimeout: true}, "tlc_explore",
			policy.Declaration{Total: 3, Grace: grace, Progress: notes}},
		{"no server", nil, "x", policy.Declaration{Total: timeout.Default().Total, Idle: timeout.Default().Idle, Grace: grace, Progress: notes}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.server.Declaration(tt.tool)
			if d := cmp.Diff(tt.want, got); err != nil || d != "" {
				t.Error(err, d)
			}
		})
	}

	if log.Len() > 0 { // that is for the calls to say
		t.Error(&log)
	}

	env["TLC_SMOKE_TIMEOUT_MS"] = "soon"
	_, err := (&toolcall.Settings{Policy: p}).Declaration("tlc_smoke")
	if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "TLC_SMOKE_TIMEOUT_MS" || bad.Tool != "tlc_smoke" {
		t.Errorf("%+v", err)
	}
}

// SPEC 10.1: only the policy says whether limits are observed, and so not enforced, not declared.
func TestObserveOnlyIsOfThePolicy(t *testing.T) {
	s := &toolcall.Settings{Options: []timeout.Setting{nil, timeout.WithObserveOnly()}}
	_, declared := s.Declaration("x")
	_, called := toolcall.Do(t.Context(), s, toolcall.Call{Tool: "x"}, func(context.Context) (string, error) {
		t.Error("called")
		return "", nil
	})
	for _, err := range []error{declared, called} {
		if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), "WithObserveOnly") || !strings.Contains(bad.Accepted, "policy") {
			t.Errorf("%v", err)
		}
	}
	for _, s := range []*toolcall.Settings{nil, {}, {Options: []timeout.Setting{nil, timeout.WithName("n")}}} {
		if _, err := s.Declaration("x"); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
