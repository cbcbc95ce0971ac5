package request_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 10.2
func TestDeclared(t *testing.T) {
	const s, m = time.Second, time.Minute
	const forever = time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		name     string
		declared policy.Declaration
		ceiling  request.Limits
		want     request.Limits
	}{
		{"idle and total", policy.Declaration{Total: 10 * m, Idle: 2 * m, Grace: 7 * s, Progress: 10 * s}, request.Limits{},
			request.Limits{Timeout: 128 * s, MaxTotal: 608 * s, ResetOnProgress: true}},
		{"notifications are farther apart", policy.Declaration{Total: 10 * m, Idle: 5 * s, Grace: 7 * s, Progress: 10 * s}, request.Limits{},
			request.Limits{Timeout: 18 * s, MaxTotal: 608 * s, ResetOnProgress: true}},
		{"idle", policy.Declaration{Idle: 2 * m}, request.Limits{}, request.Limits{Timeout: 121 * s, ResetOnProgress: true}},
		{"total", policy.Declaration{Total: m, Grace: 7 * s, Progress: 10 * s}, request.Limits{}, request.Limits{Timeout: 68 * s, MaxTotal: 68 * s}},
		{"none", policy.Declaration{Grace: 7 * s, Progress: 10 * s}, request.Limits{}, request.Limits{}},
		{"no grace", policy.Declaration{Total: m, Grace: -1}, request.Limits{}, request.Limits{Timeout: 61 * s, MaxTotal: 61 * s}},
		{"below the ceiling", policy.Declaration{Total: m, Idle: s}, request.Limits{Timeout: m, MaxTotal: 2 * m},
			request.Limits{Timeout: 2 * s, MaxTotal: 61 * s, ResetOnProgress: true}},
		{"above the ceiling", policy.Declaration{Total: 10 * m, Idle: 5 * m}, request.Limits{Timeout: m, MaxTotal: 2 * m},
			request.Limits{Timeout: m, MaxTotal: 2 * m, ResetOnProgress: true}},
		{"nothing, under a ceiling", policy.Declaration{}, request.Limits{Timeout: m, MaxTotal: 2 * m}, request.Limits{Timeout: m, MaxTotal: 2 * m}},
		{"nothing, under a ceiling that progress renews", policy.Declaration{}, request.Limits{Timeout: m, MaxTotal: 2 * m, ResetOnProgress: true},
			request.Limits{Timeout: m, MaxTotal: 2 * m, ResetOnProgress: true}},
		{"half a ceiling", policy.Declaration{Total: 10 * m}, request.Limits{Timeout: m, MaxTotal: -1}, request.Limits{Timeout: m, MaxTotal: 601 * s}},
		{"as long as can be", policy.Declaration{Total: forever, Idle: forever - 8*s, Grace: 7 * s}, request.Limits{},
			request.Limits{Timeout: forever, MaxTotal: forever, ResetOnProgress: true}},
		{"a grace as long as can be", policy.Declaration{Total: 1, Idle: 1, Grace: forever}, request.Limits{},
			request.Limits{Timeout: forever, MaxTotal: forever, ResetOnProgress: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d request.Declarations
			d.Tool("a", map[string]any{policy.DeclarationKey: tt.declared})
			if d := cmp.Diff(&tt.want, d.Limits("tools/call", "a", tt.ceiling)); d != "" {
				t.Error(d)
			}
		})
	}
}

func declaring(total time.Duration) map[string]any {
	return map[string]any{policy.DeclarationKey: policy.Declaration{Total: total}}
}

func TestDeclarations(t *testing.T) {
	const margin = time.Second
	var d request.Declarations
	want := func(tool string, timeout time.Duration) {
		t.Helper()
		var got time.Duration
		if l := d.Limits("tools/call", tool, request.Limits{}); l != nil {
			got = l.Timeout
		}
		if got != timeout {
			t.Errorf("%s: %v, want %v", tool, got, timeout)
		}
	}
	want("a", 0)
	d.Tool("a", declaring(1))
	d.Tool("b", nil)
	want("a", margin+1)
	want("b", 0)
	d.Tool("", declaring(2))
	want("a", margin+1)
	want("b", margin+2)
	d.Tool("a", declaring(3))
	want("a", margin+3)
	d.Tool("a", map[string]any{policy.DeclarationKey: "void"})
	want("a", margin+2)
	d.Tool("", map[string]any{policy.DeclarationKey: map[string]any{"totalMs": -1}})
	want("a", 0)
	if l := (*request.Declarations)(nil).Limits("tools/call", "a", request.Limits{Timeout: 1}); l != nil {
		t.Errorf("nil: %+v", l)
	}

	// A server cannot fill its client's memory.
	const many = 20_000
	for i := range many {
		d.Tool(fmt.Sprint(i), declaring(1))
	}
	known := 0
	for i := range many {
		if d.Limits("tools/call", fmt.Sprint(i), request.Limits{}) != nil {
			known++
		}
	}
	if known != 10_000 {
		t.Errorf("%d are known", known)
	}
	want(fmt.Sprint(many-1), margin+1)
}
