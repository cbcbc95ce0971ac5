package policy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 18.4: what a client says, and what a server ignores.
func TestReadBudget(t *testing.T) {
	const s = time.Second
	for text, want := range map[string]policy.Budget{
		`{"leftMs":60000,"idleMs":30000}`: {Left: 60 * s, Idle: 30 * s},
		`{"leftMs":60000}`:                {Left: 60 * s},
		`{"idleMs":0.5}`:                  {Idle: 500 * time.Microsecond},
		`{"leftMs":0}`:                    {},
		`{"leftMs":1e-9}`:                 {Left: 1},
		`{}`:                              {},
		`null`:                            {},
		`{"leftMs":9007199254740992}`:     {Left: math.MaxInt64},
		`{"LEFTMS":1,"leftMs":60000,"moreMs":"no"}`: {Left: 60 * s},
	} {
		var decoded any
		if err := json.Unmarshal([]byte(text), &decoded); err != nil {
			t.Fatal(err)
		}
		for _, value := range []any{decoded, json.RawMessage(text)} {
			got, err := policy.ReadBudget(map[string]any{policy.BudgetKey: value})
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%s as %T: %v\n%s", text, value, err, d)
			}
		}
	}
	for _, text := range []string{`{"leftMs":-1}`, `{"idleMs":-0.5}`, `{"leftMs":9007199254740994}`, `{"leftMs":1e300}`, `{"leftMs":"60000"}`,
		`{"leftMs":null}`, `{"idleMs":true}`, `{"leftMs":60000,"idleMs":[]}`, `60000`, `"soon"`, `[]`} {
		var decoded any
		if err := json.Unmarshal([]byte(text), &decoded); err != nil {
			t.Fatal(err)
		}
		for _, value := range []any{decoded, json.RawMessage(text)} {
			if got, err := policy.ReadBudget(map[string]any{policy.BudgetKey: value}); err == nil || got != (policy.Budget{}) {
				t.Errorf("%s as %T: %v, %v, want an error", text, value, got, err)
			}
		}
	}
	for _, value := range []any{math.NaN(), math.Inf(1), json.RawMessage(`{`)} {
		if got, err := policy.ReadBudget(map[string]any{policy.BudgetKey: map[string]any{"leftMs": value}}); err == nil || got != (policy.Budget{}) {
			t.Errorf("%v: %v, %v, want an error", value, got, err)
		}
	}
	if got, err := policy.ReadBudget(nil); err != nil || got != (policy.Budget{}) {
		t.Errorf("%v, %v", got, err)
	}
}

// SPEC 18.4: what is written is read as it was, to the millisecond, and never as more.
func TestBudgetObject(t *testing.T) {
	for _, b := range []policy.Budget{{}, {Left: time.Minute}, {Idle: 1}, {Left: 1234567891, Idle: time.Millisecond}, {Left: -1, Idle: time.Hour}} {
		got, err := policy.ReadBudget(map[string]any{policy.BudgetKey: b.Object()})
		want := policy.Budget{Left: max(b.Left, 0), Idle: b.Idle}
		if want.Left > time.Millisecond {
			want.Left = want.Left.Truncate(time.Millisecond)
		}
		if err != nil || got != want {
			t.Errorf("%v became %v, %v", b, got, err)
		}
	}
}

// SPEC 18.4, 18.5: an answer has a sixth of the limit to arrive in, at most 10 s, and never more than there is.
func TestBudgetAnswer(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name   string
		budget policy.Budget
		heard  bool
		by     policy.Budget
		grace  time.Duration
	}{
		{"none", policy.Budget{}, true, policy.Budget{}, 0},
		{"negative", policy.Budget{Left: -s, Idle: -s}, false, policy.Budget{}, 0},
		{"long", policy.Budget{Left: 30 * time.Minute, Idle: 30 * s}, true, policy.Budget{Left: 30*time.Minute - 10*s, Idle: 25 * s}, 2500 * time.Millisecond},
		{"unheard", policy.Budget{Left: 30 * time.Minute, Idle: 30 * s}, false, policy.Budget{Left: 25 * s}, 2500 * time.Millisecond},
		{"unheard, only idle", policy.Budget{Idle: 6 * s}, false, policy.Budget{Left: 5 * s}, 500 * time.Millisecond},
		{"a minute", policy.Budget{Left: time.Minute}, true, policy.Budget{Left: 50 * s}, 5 * s},
		{"as short as can be", policy.Budget{Left: 1}, true, policy.Budget{Left: 1}, 0},
	} {
		by, grace := tc.budget.Answer(tc.heard)
		if by != tc.by || grace != tc.grace {
			t.Errorf("%s: %v, %v, want %v, %v", tc.name, by, grace, tc.by, tc.grace)
		}
	}
}

func ExampleReadBudget() {
	meta := map[string]any{policy.BudgetKey: map[string]any{"leftMs": 60000.0, "idleMs": 30000.0}} // of a tools/call
	budget, err := policy.ReadBudget(meta)
	by, _ := budget.Answer(true)
	fmt.Println(by.Left, by.Idle, err)
	// Output: 50s 25s <nil>
}

func ExampleBudget_Object() {
	wire, _ := json.Marshal(policy.Budget{Left: time.Minute}.Object())
	fmt.Printf("%s\n", wire)
	// Output: {"leftMs":60000}
}
