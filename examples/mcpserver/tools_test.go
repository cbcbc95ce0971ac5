package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const tooLate = "Command timed out waiting for approval. Consider approving faster or configuring a longer timeout."

// answers returns a person who answers after d, unless nobody waits any more.
func answers(d time.Duration, action string, content map[string]any) elicitation {
	return func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		select {
		case <-time.After(d):
			return &mcp.ElicitResult{Action: action, Content: content}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// SPEC 7.9.
func TestApprove(t *testing.T) {
	yes, no := map[string]any{"approve": true}, map[string]any{"approve": false}
	const limit = 100 * time.Second // longer than the idle limit, which is held
	for _, tc := range []struct {
		name    string
		person  elicitation
		want    string
		failed  bool
		outcome []any
	}{
		{"approved", answers(0, "accept", yes), "Approved: rm -r build", false, nil},
		{"denied", answers(0, "accept", no), "Denied: rm -r build", false, nil},
		{"declined", answers(0, "decline", nil), "Denied: rm -r build", false, nil},
		{"dismissed", answers(0, "cancel", nil), "Nothing was decided about: rm -r build", false, nil},
		{"in time", answers(limit-1, "accept", yes), "Approved: rm -r build", false, nil},
		{"too late", answers(limit+1, "accept", yes), tooLate, true, []any{"total", 124.0}},
		{"unsupported", nil, "cannot ask for approval: this client does not support elicitation", true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachProtocol(t, options{approval: limit, interval: time.Second}, tc.person, func(t *testing.T, c *client, protocol string) {
				res, got := c.must(t, "approve", map[string]any{"action": "rm -r build"})
				o := outcome(res)
				if d := cmp.Diff([]string{tc.want}, got); d != "" || res.IsError != tc.failed || !slices.Equal(tc.outcome, o[:min(len(o), 2)]) {
					t.Errorf("isError %v, %v\n%s", res.IsError, o, d)
				}
				synctest.Wait() // the SDK may handle it after the result
				if m := c.messages(t); tc.name == "too late" && protocol == "2025-11-25" && m[0] != "Waiting for approval of rm -r build (up to 1m40s)" {
					t.Errorf("%q", m)
				}
			})
		})
	}
}

// An answer counts for the question that was asked, and for no other.
func TestApproveState(t *testing.T) {
	a := newApprover(time.Second)
	asked := time.Now()
	state := a.state(asked, "rm -r build")
	if got, err := a.readState(state, "rm -r build"); err != nil || !got.Equal(asked.Round(0)) {
		t.Errorf("%v, %v, want %v", got, err, asked)
	}
	for name, bad := range map[string][2]string{
		"another action":        {state, "rm -r src"},
		"another server's":      {newApprover(time.Second).state(asked, "rm -r build"), "rm -r build"},
		"another time":          {"00" + state[2:], "rm -r build"},
		"cut":                   {state[:20], "rm -r build"},
		"none":                  {"", "rm -r build"},
		"something else at all": {strings.Repeat("x", len(state)), "rm -r build"},
	} {
		if _, err := a.readState(bad[0], bad[1]); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A call that waits for its turn is under no limit, can be cancelled, and is served when its turn has come.
func TestAdmission(t *testing.T) {
	eachProtocol(t, options{calls: 1, approval: time.Hour}, answers(time.Hour-1, "decline", nil), func(t *testing.T, c *client, protocol string) {
		begun := time.Now()
		if protocol == protocols[0] { // there the call waits for the person
			go func() { _, _ = c.call(t.Context(), "approve", map[string]any{"action": "x"}) }()
		} else {
			go func() { _, _ = c.call(t.Context(), "deaf", map[string]any{"seconds": 5}) }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if res, err := c.call(ctx, "hang", nil); err == nil {
			t.Errorf("a call out of turn: %v", res)
		}
		_, got := c.must(t, "search", map[string]any{"root": t.TempDir(), "pattern": "x"})
		want := map[string]time.Duration{protocols[0]: time.Hour - 1, protocols[1]: 5 * time.Second}[protocol]
		if took := time.Since(begun); got[0] != "0 matching lines; searched 0 of 0 files" || took < want {
			t.Errorf("%q after %v, want its turn after %v", got, took, want)
		}
	})
}

// Clients make up arguments from the schemas, and some take no list of types.
func TestSchemas(t *testing.T) {
	eachProtocol(t, options{}, nil, func(t *testing.T, c *client, _ string) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]any)
		for _, tool := range list.Tools {
			raw, _ := json.Marshal(tool.InputSchema)
			var schema struct{ Properties map[string]struct{ Type any } }
			if err := json.Unmarshal(raw, &schema); err != nil {
				t.Fatal(err)
			}
			for name, p := range schema.Properties {
				got[tool.Name+"."+name] = p.Type
			}
		}
		want := map[string]any{
			"run_command.command": "string", "run_command.args": "array", "run_command.dir": "string", "run_command.timeoutMs": "integer",
			"search.root": "string", "search.pattern": "string", "search.timeoutMs": "integer",
			"approve.action": "string", "deaf.seconds": "number",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestDeafSeconds(t *testing.T) {
	for _, seconds := range []float64{-1, 600.1} {
		if _, _, err := deaf(t.Context(), nil, deafInput{seconds}); err == nil || !strings.HasSuffix(err.Error(), "want a number from 0 to 600") {
			t.Errorf("%v: %v", seconds, err)
		}
	}
}
