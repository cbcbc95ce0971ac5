package toolcall_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const ms = time.Millisecond

// SPEC 10.1
func TestLimitsOnTheWire(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits toolcall.Limits
		wire   string
	}{
		{"none", toolcall.Limits{}, `{"idleMs":0,"totalMs":0}`},
		{"negative ones are none", toolcall.Limits{Total: -1, Idle: -1, Grace: -1, Progress: -1}, `{"idleMs":0,"totalMs":0}`},
		{"all", toolcall.Limits{Total: 10 * time.Minute, Idle: 2 * time.Minute, Grace: 7 * time.Second, Progress: 10 * time.Second, MaxTotal: 30 * time.Minute, Soft: 30 * time.Second},
			`{"graceMs":7000,"idleMs":120000,"maxTotalMs":1800000,"progressMs":10000,"softMs":30000,"totalMs":600000}`},
		{"fractions", toolcall.Limits{Total: 1500 * time.Microsecond}, `{"idleMs":0,"totalMs":1.5}`},
		{"no ceiling, at once", toolcall.Limits{MaxTotal: -1, Soft: -1}, `{"idleMs":0,"maxTotalMs":0,"softMs":0,"totalMs":0}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.limits)
			if err != nil || string(got) != tt.wire {
				t.Errorf("%s, %v; want %s", got, err, tt.wire)
			}
		})
	}
}

// SPEC 10.1, 10.2: a value that is not a finite number from 0 to 2^53 voids the object.
func TestReadLimits(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		wire  string
		want  toolcall.Limits
		wrong string // the field that the error names
	}{
		{`{"totalMs":0,"idleMs":0}`, toolcall.Limits{}, ""},
		{`{"totalMs":600000,"idleMs":120000.5,"graceMs":7000,"progressMs":10000,"maxTotalMs":1,"softMs":2}`,
			toolcall.Limits{Total: 600 * time.Second, Idle: 120000*ms + ms/2, Grace: 7 * time.Second, Progress: 10 * time.Second, MaxTotal: ms, Soft: 2 * ms}, ""},
		{`{"totalMs":0,"idleMs":0,"maxTotalMs":0,"softMs":0,"graceMs":0,"progressMs":0}`, toolcall.Limits{MaxTotal: -1, Soft: -1}, ""},
		{`{"totalMs":0,"idleMs":0,"later":"unknown"}`, toolcall.Limits{}, ""},
		{`{"totalMs":9007199254740992,"idleMs":9.2e12}`, toolcall.Limits{Total: forever, Idle: 9_200_000_000_000 * ms}, ""},
		{`{"totalMs":1e-300,"idleMs":0}`, toolcall.Limits{Total: 1}, ""}, // no limit is something else
		{`{"totalMs":9007199254740994,"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":1e999,"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":-1,"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":-1e-9,"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":"1000","idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":null,"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":{},"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"TOTALMS":1,"idleMs":0}`, toolcall.Limits{}, "totalMs"},
		{`{"totalMs":0}`, toolcall.Limits{}, "idleMs"},
		{`{"totalMs":0,"idleMs":true}`, toolcall.Limits{}, "idleMs"},
		{`{"totalMs":0,"idleMs":0,"graceMs":-7000}`, toolcall.Limits{}, "graceMs"},
		{`{"totalMs":0,"idleMs":0,"progressMs":null}`, toolcall.Limits{}, "progressMs"},
		{`{"totalMs":0,"idleMs":0,"maxTotalMs":"1"}`, toolcall.Limits{}, "maxTotalMs"},
		{`{"totalMs":0,"idleMs":0,"softMs":[]}`, toolcall.Limits{}, "softMs"},
		{`[]`, toolcall.Limits{}, "-"},
		{`null`, toolcall.Limits{}, "totalMs"},
		{`3`, toolcall.Limits{}, "-"},
	} {
		t.Run(tt.wire, func(t *testing.T) {
			got := toolcall.Limits{Total: 42}
			err := json.Unmarshal([]byte(tt.wire), &got)
			if tt.wrong == "" {
				if d := cmp.Diff(tt.want, got); err != nil || d != "" {
					t.Error(err, d)
				}
			} else if err == nil || got != (toolcall.Limits{Total: 42}) {
				t.Errorf("%v, and the limits are %+v", err, got)
			}
			var config *timeout.ConfigError
			if named := errors.As(err, &config); named != (len(tt.wrong) > 1) || named && config.Key != tt.wrong {
				t.Errorf("%v: want one that names %s", err, tt.wrong)
			}

			// As an SDK decodes it.
			var meta map[string]any
			if json.Unmarshal([]byte(`{"`+toolcall.LimitsKey+`":`+strings.ReplaceAll(tt.wire, "1e999", "-1")+`}`), &meta) != nil {
				t.Fatal("no JSON")
			}
			read, ok := toolcall.ReadLimits(meta)
			if d := cmp.Diff(tt.want, read); ok != (tt.wrong == "") || ok && d != "" {
				t.Error(ok, d)
			}
		})
	}
	for name, meta := range map[string]map[string]any{
		"no meta": nil, "another key": {"x": 1}, "null": {toolcall.LimitsKey: nil},
		"infinite":  {toolcall.LimitsKey: map[string]any{"totalMs": math.Inf(1), "idleMs": 0}},
		"no number": {toolcall.LimitsKey: map[string]any{"totalMs": math.NaN(), "idleMs": 0}},
	} {
		if l, ok := toolcall.ReadLimits(meta); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// SPEC 10.1: they are resolved from the policy, so that the environment's word shows.
func TestServerLimits(t *testing.T) {
	env := map[string]string{"TLC_SMOKE_TIMEOUT_MS": "90000"}
	p := &policy.Policy{
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
	const grace, notes = timeout.DefaultGrace, 10 * time.Second
	for _, tt := range []struct {
		name   string
		server *toolcall.Settings
		tool   string
		want   toolcall.Limits
	}{
		{"the default", &toolcall.Settings{Policy: p}, "", toolcall.Limits{Total: 30 * time.Minute, Idle: 2 * time.Minute, Grace: grace, Progress: notes}},
		{"the environment", &toolcall.Settings{Policy: p}, "tlc_smoke", toolcall.Limits{Total: 90 * time.Second, Grace: grace, Progress: notes}},
		{"requests have no say", &toolcall.Settings{Policy: p, Interval: time.Second}, "tlc_explore",
			toolcall.Limits{Total: 10 * time.Minute, Idle: 10 * time.Minute, Grace: time.Second, Progress: time.Second}},
		{"no interval, SPEC 2.13", &toolcall.Settings{Policy: p, Interval: -1}, "tlc_smoke", toolcall.Limits{Total: 90 * time.Second, Grace: grace, Progress: -1}},
		{"requests have a say", &toolcall.Settings{Policy: p, MetaTimeout: true}, "tlc_explore",
			toolcall.Limits{Total: 10 * time.Minute, Idle: 10 * time.Minute, Grace: time.Second, Progress: notes, MaxTotal: 30 * time.Minute}},
		{"any say", &toolcall.Settings{Policy: p, ArgumentTimeout: true}, "unlimited", toolcall.Limits{Grace: grace, Progress: notes, MaxTotal: -1}},
		{"no grace", &toolcall.Settings{Policy: p}, "no grace", toolcall.Limits{Total: 1, Grace: -1, Progress: notes}},
		{"observed", &toolcall.Settings{Policy: p}, "watched", toolcall.Limits{Grace: grace, Progress: notes}},
		{"all observed", &toolcall.Settings{Policy: &policy.Policy{Default: &timeout.Config{Total: time.Minute, Idle: 30 * time.Second}, ObserveOnly: true}}, "x", toolcall.Limits{Grace: grace, Progress: notes}},
		{"observed by an option", &toolcall.Settings{Policy: p, Options: []timeout.Option{timeout.WithObserveOnly(), timeout.WithName("n")}}, "tlc_smoke",
			toolcall.Limits{Grace: grace, Progress: notes}},
		{"observed by an option, no policy", &toolcall.Settings{Options: []timeout.Option{nil, timeout.Config{Total: 3}, timeout.WithObserveOnly()}}, "x",
			toolcall.Limits{Grace: grace, Progress: notes}},
		{"an option", &toolcall.Settings{Policy: p, Options: []timeout.Option{timeout.WithName("n"), timeout.Config{Total: 3, Idle: 5}}}, "tlc_smoke",
			toolcall.Limits{Total: 3, Idle: 3, Grace: grace, Progress: notes}},
		{"no server", nil, "x", toolcall.Limits{Total: timeout.Default().Total, Idle: timeout.Default().Idle, Grace: grace, Progress: notes}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.server.Limits(tt.tool)
			if d := cmp.Diff(tt.want, got); err != nil || d != "" {
				t.Error(err, d)
			}
		})
	}

	env["TLC_SMOKE_TIMEOUT_MS"] = "soon"
	_, err := (&toolcall.Settings{Policy: p}).Limits("tlc_smoke")
	if bad := (*timeout.ConfigError)(nil); !errors.As(err, &bad) || bad.Key != "TLC_SMOKE_TIMEOUT_MS" || bad.Tool != "tlc_smoke" {
		t.Errorf("%+v", err)
	}
}

// What is written is read as it was, whatever it is; and nothing panics.
func FuzzLimits(f *testing.F) {
	f.Add(`{"totalMs":600000,"idleMs":120000.5,"graceMs":7000,"progressMs":10000,"maxTotalMs":1,"softMs":0}`)
	f.Add(`{"totalMs":1e-300,"idleMs":9007199254740992}`)
	f.Fuzz(func(t *testing.T, wire string) {
		var l, again toolcall.Limits
		if json.Unmarshal([]byte(wire), &l) != nil {
			return
		}
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, pair := range [][2]time.Duration{
			{l.Total, again.Total}, {l.Idle, again.Idle}, {l.Grace, again.Grace},
			{l.Progress, again.Progress}, {l.MaxTotal, again.MaxTotal}, {l.Soft, again.Soft},
		} {
			// A float64 has 53 bits.
			if diff := math.Abs(float64(pair[0]) - float64(pair[1])); diff > math.Abs(float64(pair[0]))/(1<<50)+1 || (pair[0] > 0) != (pair[1] > 0) {
				t.Errorf("%s: %v became %v", wire, pair[0], pair[1])
			}
		}
	})
}
