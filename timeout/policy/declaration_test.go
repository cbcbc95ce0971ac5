package policy_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

const ms = time.Millisecond

// SPEC 10.1
func TestDeclarationOnTheWire(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits policy.Declaration
		wire   string
	}{
		{"none", policy.Declaration{}, `{"idleMs":0,"totalMs":0}`},
		{"negative ones are none", policy.Declaration{Total: -1, Idle: -1, Grace: -1, Progress: -1}, `{"idleMs":0,"totalMs":0}`},
		{"all", policy.Declaration{Total: 10 * time.Minute, Idle: 2 * time.Minute, Grace: 7 * time.Second, Progress: 10 * time.Second, MaxRequested: 30 * time.Minute, Soft: 30 * time.Second},
			`{"graceMs":7000,"idleMs":120000,"maxTotalMs":1800000,"progressMs":10000,"softMs":30000,"totalMs":600000}`},
		{"fractions", policy.Declaration{Total: 1500 * time.Microsecond}, `{"idleMs":0,"totalMs":1.5}`},
		{"methods, one level deep", policy.Declaration{Methods: map[string]policy.Declaration{
			"tools/list": {Total: time.Second, Methods: map[string]policy.Declaration{"x": {}}}}},
			`{"idleMs":0,"methods":{"tools/list":{"idleMs":0,"totalMs":1000}},"totalMs":0}`},
		{"no ceiling, at once", policy.Declaration{MaxRequested: -1, Soft: -1}, `{"idleMs":0,"maxTotalMs":0,"softMs":0,"totalMs":0}`},
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
func TestReadDeclaration(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		wire  string
		want  policy.Declaration
		wrong string // the field that the error names
	}{
		{`{"totalMs":0,"idleMs":0}`, policy.Declaration{}, ""},
		{`{"totalMs":600000,"idleMs":120000.5,"graceMs":7000,"progressMs":10000,"maxTotalMs":1,"softMs":2}`,
			policy.Declaration{Total: 600 * time.Second, Idle: 120000*ms + ms/2, Grace: 7 * time.Second, Progress: 10 * time.Second, MaxRequested: ms, Soft: 2 * ms}, ""},
		{`{"totalMs":0,"idleMs":0,"maxTotalMs":0,"softMs":0,"graceMs":0,"progressMs":0}`, policy.Declaration{MaxRequested: -1, Soft: -1}, ""},
		{`{"totalMs":0,"idleMs":0,"later":"unknown"}`, policy.Declaration{}, ""},
		{`{"totalMs":9007199254740992,"idleMs":9.2e12}`, policy.Declaration{Total: forever, Idle: 9_200_000_000_000 * ms}, ""},
		{`{"totalMs":1e-300,"idleMs":0}`, policy.Declaration{Total: 1}, ""}, // no limit is something else
		{`{"totalMs":9007199254740994,"idleMs":0}`, policy.Declaration{}, "totalMs"},
		{`{"totalMs":1e999,"idleMs":0}`, policy.Declaration{}, "totalMs"},
		{`{"totalMs":-1,"idleMs":0}`, policy.Declaration{}, "totalMs"},
		{`{"totalMs":null,"idleMs":0}`, policy.Declaration{}, "totalMs"},
		{`{"idleMs":0}`, policy.Declaration{}, "totalMs"},
		{`{"totalMs":0}`, policy.Declaration{}, "idleMs"},
		{`{"totalMs":0,"idleMs":0,"graceMs":-7000}`, policy.Declaration{}, "graceMs"},
		{`{"totalMs":0,"idleMs":0,"progressMs":null}`, policy.Declaration{}, "progressMs"},
		{`{"totalMs":0,"idleMs":0,"methods":{"tools/list":{"totalMs":1000,"idleMs":0,"methods":3}}}`,
			policy.Declaration{Methods: map[string]policy.Declaration{"tools/list": {Total: time.Second}}}, ""},
		{`{"totalMs":0,"idleMs":0,"methods":{}}`, policy.Declaration{Methods: map[string]policy.Declaration{}}, ""},
		{`{"totalMs":0,"idleMs":0,"methods":{"tools/list":{"totalMs":1000}}}`, policy.Declaration{}, "idleMs"},
		{`{"totalMs":0,"idleMs":0,"methods":["tools/list"]}`, policy.Declaration{}, "methods"},
		{`[]`, policy.Declaration{}, "-"},
		{`null`, policy.Declaration{}, "totalMs"},
		{`3`, policy.Declaration{}, "-"},
	} {
		t.Run(tt.wire, func(t *testing.T) {
			got := policy.Declaration{Total: 42}
			err := json.Unmarshal([]byte(tt.wire), &got)
			if tt.wrong == "" {
				if d := cmp.Diff(tt.want, got); err != nil || d != "" {
					t.Error(err, d)
				}
			} else if err == nil || !cmp.Equal(got, policy.Declaration{Total: 42}) {
				t.Errorf("%v, and the limits are %+v", err, got)
			}
			var config *timeout.ConfigError
			if named := errors.As(err, &config); named != (len(tt.wrong) > 1) || named && config.Key != tt.wrong {
				t.Errorf("%v: want one that names %s", err, tt.wrong)
			}

			// As an SDK decodes it.
			var meta map[string]any
			if json.Unmarshal([]byte(`{"`+policy.DeclarationKey+`":`+strings.ReplaceAll(tt.wire, "1e999", "-1")+`}`), &meta) != nil {
				t.Fatal("no JSON")
			}
			read, ok := policy.ReadDeclaration(meta)
			if d := cmp.Diff(tt.want, read); ok != (tt.wrong == "") || ok && d != "" {
				t.Error(ok, d)
			}
		})
	}
	for name, meta := range map[string]map[string]any{
		"no meta": nil, "another key": {"x": 1}, "null": {policy.DeclarationKey: nil},
		"infinite":  {policy.DeclarationKey: map[string]any{"totalMs": math.Inf(1), "idleMs": 0}},
		"no number": {policy.DeclarationKey: map[string]any{"totalMs": math.NaN(), "idleMs": 0}},
	} {
		if l, ok := policy.ReadDeclaration(meta); ok {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// SPEC 10.3: the method's own limits, or else those under the longest prefix.
func TestDeclarationOfAMethod(t *testing.T) {
	d := policy.Declaration{Total: time.Hour, Methods: map[string]policy.Declaration{
		"resources/read": {Total: 1}, "resources/*": {Total: 2}, "resources/templates/*": {Total: 3}, "prompts/*": {Total: 4},
	}}
	for method, want := range map[string]time.Duration{
		"resources/read": 1, "resources/list": 2, "resources/templates/list": 3, "prompts/get": 4, "tools/list": 0, "resources": 0,
	} {
		if got, ok := d.Method(method); got.Total != want || ok != (want != 0) {
			t.Errorf("%s: %v, %v, want %v", method, got.Total, ok, want)
		}
	}
	if got, ok := (policy.Declaration{Methods: map[string]policy.Declaration{"*": {Idle: 5}}}).Method("ping"); !ok || got.Idle != 5 {
		t.Errorf("%v, %v", got, ok)
	}
}
