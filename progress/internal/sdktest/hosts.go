package sdktest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// knownHosts tests SPEC 18.5: a call that a known host would give up is continued before that, and no call is stopped.
// Package hosts has the limits of the hosts.
func knownHosts(t *testing.T, sdk SDK) {
	for _, tc := range []struct {
		name, client string
		off          bool          // the server does not have the option Hosts
		after        time.Duration // After of a Continuation in the options; 0 means none
		beats        time.Duration // the time between two beats of the tool; 0 means that it does not beat
		unheard      bool          // the call has no progress token
		continued    time.Duration // when the call must be continued; 0 means that it must not
		listed       bool          // the tool is listed with its output schema
	}{
		{"one minute", "@cline/core", false, 0, 0, false, 50 * s, false},
		{"with the name of the server", "qwen-cli-mcp-client-files", false, 0, 0, false, 290 * s, false},
		{"five minutes of silence, ten in all", "qwen-cli-mcp-client-files", false, 0, 7 * s, false, 590 * s, false},
		{"progress does not renew it", "@cline/core", false, 0, 7 * s, false, 50 * s, false},
		{"progress renews it", "opencode", false, 0, 7 * s, false, 0, false},
		{"and does not come", "opencode", false, 0, 0, false, 50 * s, false},
		{"and is not asked for", "opencode", false, 0, 7 * s, true, 50 * s, false},
		{"no limit", "crush", false, 0, 0, false, 0, true},
		{"unknown", "peer", false, 0, 0, false, 0, true},
		{"not asked for", "@cline/core", true, 0, 0, false, 0, true},
		{"by hand", "@cline/core", false, 20 * s, 0, false, 20 * s, false},
		{"by hand, longer", "@cline/core", false, 2 * time.Minute, 0, false, 2 * time.Minute, false},
	} {
		for _, w := range Ways {
			if w.Stateless && w.Version == Old || w.Name == "SSE" {
				continue // a request does not contain the name of its client
			}
			w.Client = tc.client
			Bubble(t, tc.name+" "+w.Name, func(t *testing.T) {
				var log bytes.Buffer
				p := Dial(t, sdk.NewServer(Config{
					Hosts: !tc.off, Continuation: tc.after,
					Policy: &policy.Policy{Default: &timeout.Config{Total: time.Hour}, Logger: slog.New(slog.NewTextHandler(&log, nil))},
					Tools: map[string]Tool{"work": {Output: true, Run: func(ctx context.Context, _ *Call) (*Result, error) {
						for range 100 {
							if Sleep(ctx, max(tc.beats, 20*s)) != nil {
								return nil, ctx.Err()
							}
							if tc.beats > 0 {
								heartbeat.Beat(ctx)
							}
						}
						return &Result{Texts: []string{"done"}, Structured: object{"files": 3.0}}, nil
					}}},
				}), w)
				p.declare = false
				for _, tool := range p.must("tools/list", nil)["tools"].([]any) {
					if listed := tool.(object)["outputSchema"] != nil; tool.(object)["name"] == "work" && listed != tc.listed {
						t.Errorf("with a schema: %v", listed)
					}
				}
				var token any = "t"
				if tc.unheard {
					token = nil
				}
				m := p.call("work", token, nil).wait()
				took := m.Took
				if metaOf(m.Result, task.ContinuationKey) == nil {
					if tc.continued > 0 || m.Result["isError"] == true || texts(m.Result)[0] != "done" {
						t.Errorf("after %v: %v", took, m)
					}
				} else if id := continuedID(t, m, "wait_for_result"); took != tc.continued {
					t.Errorf("%s after %v, want %v", id, took, tc.continued)
				} else {
					for metaOf(m.Result, task.ContinuationKey) != nil {
						m = p.wait("wait_for_result", object{"id": id})
					}
					if texts(m.Result)[0] != "done" {
						t.Errorf("%v", m)
					}
				}
				synctest.Wait()
				known := 0
				if tc.client != "peer" && tc.client != "crush" && !tc.off && tc.after == 0 && w.Version != New { // New has no initialize
					known = 1
				}
				if n := strings.Count(log.String(), "the host is known"); n != known {
					t.Errorf("logged %d times: %.300s", n, log.String())
				}
			})
		}
	}
}
