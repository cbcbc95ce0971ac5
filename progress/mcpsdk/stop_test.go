package mcpsdk_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

var versions = []string{protocol2025, protocol2026}

// SPEC 7.7, 3.1, 3.2, 3.9: what a client gets of a tool that was stopped, panicked or failed.
func TestResultOfFailure(t *testing.T) {
	const (
		idleText  = "No progress for 90.25s (idle timeout). Tool should call heartbeat() during long work."
		totalText = "Tool exceeded wall-clock limit of 120s."
	)
	idle, total := timeout.Config{Idle: 90250 * time.Millisecond}, timeout.Config{Total: 2 * time.Minute}
	idleOutcome := map[string]any{"kind": "idle", "exitCode": 124.0, "limitMs": 90250.0, "idleMs": 90250.0, "totalMs": 0.0}
	for _, tt := range []struct {
		name, tool string
		limits     timeout.Config
		want       []string
		outcome    map[string]any
		after      time.Duration
	}{
		{"idle", "lost", idle, []string{idleText}, idleOutcome, 90250 * time.Millisecond},
		{"partial output", "silent", idle, []string{idleText, "two of three files"}, idleOutcome, 90250 * time.Millisecond},
		{"total", "silent", total, []string{totalText, "two of three files"},
			map[string]any{"kind": "total", "exitCode": 124.0, "limitMs": 120e3, "totalMs": 120e3, "idleMs": 0.0, "leftMs": 0.0}, 2 * time.Minute},
		{"deaf", "deaf", idle, []string{idleText},
			map[string]any{"kind": "idle", "exitCode": 124.0, "limitMs": 90250.0, "idleMs": 90250.0, "totalMs": 0.0, "abandoned": true},
			90250*time.Millisecond + timeout.DefaultGrace},
		{"its own words", "own", idle, []string{idleText + "\n\nPartial output:\nhalf of it"}, idleOutcome, 90250 * time.Millisecond},
		{"panic", "panic", idle, []string{"panic: no such index"}, nil, 0},
		{"error of a raw handler", "fail", idle, []string{"disk is full"}, nil, 0},
		{"error that is a nil pointer", "nil", idle, []string{"panic: runtime error: invalid memory address or nil pointer dereference"}, nil, 0},
	} {
		for _, version := range versions {
			t.Run(tt.name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					release := make(chan struct{})
					defer close(release)
					s.AddTool(&mcp.Tool{Name: "deaf", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						<-release
						return nil, nil
					})
					s.AddTool(&mcp.Tool{Name: "nil", InputSchema: anyInput}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						var none *fs.PathError
						return nil, none
					})
					s.AddTool(&mcp.Tool{Name: "own", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						<-ctx.Done()
						res := new(mcp.CallToolResult)
						mcpsdk.SetResult(res, context.Cause(ctx), "half of it")
						return res, nil
					})
					mcpsdk.Install(s, &policy.Policy{Default: &tt.limits})
					cs := inMemory(version)(t, s, nil)
					start := time.Now()
					res := call(t, cs, tt.tool, nil)
					if took := time.Since(start); took != tt.after {
						t.Errorf("answered after %v, want %v", took, tt.after)
					}
					if !res.IsError {
						t.Error("isError is false")
					}
					if d := cmp.Diff(tt.want, texts(res)); d != "" {
						t.Error(d)
					}
					inexact := cmpopts.IgnoreMapEntries(func(k string, _ any) bool {
						return k == "elapsedMs" || k == "longestGapMs" || k == "beats"
					})
					wire, err := json.Marshal(res)
					if err != nil {
						t.Fatal(err)
					}
					if typed := strings.Contains(string(wire), `"resultType":"complete"`); typed != (version == protocol2026) {
						t.Errorf("the result's type: %s", wire)
					}
					if d := cmp.Diff(tt.outcome, outcome(res), inexact, cmpopts.EquateEmpty()); d != "" {
						t.Error(d)
					}
				})
			})
		}
	}
}
