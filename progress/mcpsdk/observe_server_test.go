package mcpsdk_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 3.18: a server whose policy only observes answers as if there were no limits, and its
// log says which tools would have been stopped.
func TestPolicyObserveOnly(t *testing.T) {
	limits := timeout.Config{Idle: 10 * time.Second, Total: time.Minute}
	for _, tt := range []struct {
		name   string
		policy policy.Policy
		want   []string
		log    []string
	}{
		{"enforced", policy.Policy{Default: &limits}, []string{"No progress for 10s (idle timeout). Tool should call heartbeat() during long work."}, []string{`msg="tool timed out" tool=slow`}},
		{"observed", policy.Policy{Default: &limits, ObserveOnly: true}, []string{"done"}, []string{
			`msg="tool would have been stopped: its limits are only observed" tool=slow error.message="No progress for 10s`,
			`msg="tool would have been stopped: its limits are only observed" tool=slow error.message="Tool exceeded wall-clock limit of 60s."`,
			`msg="tool that would have been stopped has ended" tool=slow`, "idle_needed=1m31s total_needed=1m31s\n",
		}},
		{"one tool is", policy.Policy{Default: &limits, Tools: map[string]policy.Tool{"slow": {ObserveOnly: true}}}, []string{"done"}, []string{"idle_needed=1m31s"}},
		{"another tool is", policy.Policy{Default: &limits, Tools: map[string]policy.Tool{"fast": {ObserveOnly: true}}},
			[]string{"No progress for 10s (idle timeout). Tool should call heartbeat() during long work."}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				tt.policy.Lookup = func(string) (string, bool) { return "", false }
				tt.policy.Logger = slog.New(slog.NewTextHandler(&log, nil))
				s := newServer()
				s.AddTool(&mcp.Tool{Name: "slow", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if err := sleep(ctx, 90*time.Second); err != nil {
						return nil, err
					}
					return textResult("done"), nil
				})
				mcpsdk.Install(s, &tt.policy)
				res, err := inMemory(protocol2025)(t, s, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "slow"})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if d := cmp.Diff(tt.want, texts(res)[:1]); d != "" || res.IsError != (tt.want[0] != "done") {
					t.Error(res.IsError, d)
				}
				for _, want := range tt.log {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log has no %s:\n%s", want, log.String())
					}
				}
			})
		})
	}
}
