package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// heard gets the progress that a client hears.
type heard struct {
	each func(mcp.ProgressNotificationParams)
}

func (h *heard) add(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	if h.each != nil {
		h.each(*r.Params)
	}
}

func connectTo(t *testing.T, transport mcp.Transport, h *heard) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, &mcp.ClientOptions{ProgressNotificationHandler: h.add})
	cs, err := c.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// served is a client of a server in this process.
func served(t *testing.T, c *checker, p *policy.Policy, h *heard) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	ss, err := newServer(c, p, 10*time.Millisecond).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs := connectTo(t, here, h)
	t.Cleanup(func() {
		_ = cs.Close()
		_ = ss.Wait()
	})
	return cs
}

func callTool(ctx context.Context, t *testing.T, cs *mcp.ClientSession, name string, arguments map[string]any) (text string, isError bool, outcome map[string]any) {
	t.Helper()
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken("t")
	res, err := cs.CallTool(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	outcome, _ = res.Meta[toolcall.OutcomeKey].(map[string]any)
	return res.Content[0].(*mcp.TextContent).Text, res.IsError, outcome
}

// What the program serves: the tools with their limits, the environment and the request.
func TestServe(t *testing.T) {
	for name, tc := range map[string]struct {
		mode       string
		key, value string // of the environment
		tool       string
		arguments  map[string]any
		want       string
		isError    bool
		limit      float64 // that fired, in the outcome
	}{
		"fine":           {"fine", "", "", "tlc_check", nil, "no error found, and everything was searched", false, 0},
		"error in model": {"wrong", "", "", "tlc_smoke", map[string]any{"model": "deadlock"}, "the model is wrong: assertion violated", false, 0},
		"incomplete":     {"incomplete", "", "", "tlc_check", nil, "the check is not complete", true, 0},
		"its own code":   {"fails", "", "", "tlc_smoke", nil, "failed: exit status 3", true, 0},
		"environment":    {"stuck", "TLC_SMOKE_TIMEOUT_MS", "50", "tlc_smoke", nil, stuck, true, 50},
		"request":        {"stuck", "TLC_EXPLORE_TIMEOUT_MS", "3600000", "tlc_explore", map[string]any{"timeoutMs": 50}, stuck, true, 50},
		"no total":       {"stuck", "MCP_IDLE_TIMEOUT", "0.05", "tlc_check", nil, "Spin process timed out after 50ms without output.|No progress for 0.05s", true, 50},
		"no such model":  {"fine", "", "", "tlc_smoke", map[string]any{"model": "nowhere.pml"}, `no file "nowhere.pml"`, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := limitsOfTools(newLogger(io.Discard))
			p.Lookup = func(key string) (string, bool) { return tc.value, key == tc.key }
			cs := served(t, fakeSpin(t, tc.mode), p, new(heard))
			text, isError, outcome := callTool(t.Context(), t, cs, tc.tool, tc.arguments)
			if !says(text, tc.want) || isError != tc.isError {
				t.Errorf("isError %v, want %v and %q in:\n%s", isError, tc.isError, tc.want, text)
			}
			if tc.limit > 0 && (outcome["exitCode"] != 124.0 || outcome["limitMs"] != tc.limit) {
				t.Errorf("%v:\n%s", outcome, text)
			}
		})
	}
}

// SPEC 2.3: over stdio, a setting that is corrected is logged by the call that it is for, and by nothing else.
func TestServeOverStdio(t *testing.T) {
	t.Parallel()
	cmd := harness.Command("tlc", "serve")
	dir := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+dir, "TMP="+dir, fakeMode+"=fine", "SPIN="+self(t), "CC="+self(t), "TLC_SMOKE_TIMEOUT_MS=60000")
	var log bytes.Buffer
	cmd.Stderr = &log
	cs := connectTo(t, &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Hour}, new(heard))
	if _, err := cs.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	callTool(t.Context(), t, cs, "tlc_smoke", nil)
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Count(log.String(), "exceeds total timeout"); got != 1 {
		t.Errorf("%d warnings:\n%s", got, &log)
	}
	nothingLeft(t, dir)
}

// SPEC 10.1: the limits that the server declares for its tools.
func TestServedTools(t *testing.T) {
	t.Parallel()
	p := limitsOfTools(newLogger(io.Discard))
	p.Lookup = func(string) (string, bool) { return "", false }
	cs := served(t, fakeSpin(t, "fine"), p, new(heard))
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, tool := range list.Tools {
		limits, _ := tool.Meta["io.github.tooldeadline/limits"].(map[string]any)
		got[tool.Name] = limits["totalMs"]
		schema, _ := tool.InputSchema.(map[string]any)
		if properties, _ := schema["properties"].(map[string]any); properties["timeoutMs"] == nil || tool.Description == "" {
			t.Errorf("%s: %v, %q", tool.Name, properties, tool.Description)
		}
	}
	if diff := cmp.Diff(map[string]any{"tlc_check": 0.0, "tlc_smoke": 120000.0, "tlc_explore": 600000.0}, got); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

// SPEC 3.11: a client hears how far the search has come; when it cancels, the search is aborted.
func TestServeAborts(t *testing.T) {
	t.Parallel()
	h := new(heard)
	cs := served(t, fakeSpin(t, "deaf"), calledWith(timeout.Config{}).policy, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	message := regexp.MustCompile(`^\d+ states, depth \d+, \d+ MiB$`)
	h.each = func(p mcp.ProgressNotificationParams) {
		if message.MatchString(p.Message) { // or the newest line, before the tool has read it
			cancel()
		}
	}
	params := &mcp.CallToolParams{Name: "tlc_check"}
	params.SetProgressToken("t")
	if _, err := cs.CallTool(ctx, params); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
