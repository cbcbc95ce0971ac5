package main

import (
	"context"
	"slices"
	"strings"
	"testing"
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
	for _, tc := range []struct {
		name    string
		person  elicitation
		args    []string
		want    string
		failed  bool
		outcome []any
	}{
		{"approved", answers(0, "accept", yes), nil, "Approved: rm -r build", false, nil},
		{"denied", answers(0, "accept", no), nil, "Denied: rm -r build", false, nil},
		{"declined", answers(0, "decline", nil), nil, "Denied: rm -r build", false, nil},
		{"dismissed", answers(0, "cancel", nil), nil, "Nothing was decided about: rm -r build", false, nil},
		// Longer than the idle limit, which is held.
		{"in time", answers(5*time.Second, "accept", yes), nil, "Approved: rm -r build", false, nil},
		{"too late", answers(4*time.Second, "accept", yes), []string{"-approval-limit", "1s"}, tooLate, true, []any{"total", 124.0}},
		{"unsupported", nil, nil, "cannot ask for approval: this client does not support elicitation", true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, w way) {
				c := w.connect(t, tc.person, []string{"MCP_IDLE_TIMEOUT=3"}, tc.args...)
				res, got := c.must(t, "approve", map[string]any{"action": "rm -r build"})
				if d := cmp.Diff([]string{tc.want}, got); d != "" || res.IsError != tc.failed {
					t.Errorf("isError %v\n%s", res.IsError, d)
				}
				o := outcome(t, res)
				if d := cmp.Diff(tc.outcome, o[:min(len(o), 2)]); d != "" && len(tc.outcome)+len(o) > 0 {
					t.Error(d)
				}
				if tc.name == "too late" && w.protocol == "2025-11-25" {
					eventually(t, func() bool { // the SDK may handle it after the result
						return slices.Contains(c.messages(t), "Waiting for approval of rm -r build (up to 1s)")
					})
				}
			})
		})
	}
}

// An abort ends the question. Over HTTP, before 2026-07-28, the SDK has no way to say so to
// the client: the stream of the call is closed. There the client must know by itself.
func TestApproveAbort(t *testing.T) {
	told := slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w == way{"http", "2025-11-25"} })
	eachOf(t, told, func(t *testing.T, w way) {
		asked, ended := make(chan bool), make(chan bool)
		c := w.connect(t, func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(asked)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}, nil)
		c.abort(t, "approve", map[string]any{"action": "x"}, func() bool {
			select {
			case <-asked:
				return true
			default:
				return false
			}
		})
		select {
		case <-ended:
		case <-time.After(generous):
			t.Error("the person is still asked")
		}
	})
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
