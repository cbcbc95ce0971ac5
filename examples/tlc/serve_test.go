package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// heard has the progress that a client gets.
type heard struct {
	mu  sync.Mutex
	all []mcp.ProgressNotificationParams
}

func (h *heard) add(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, *r.Params)
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

// What the program serves on stdin and stdout: the tools with their limits, the environment and the
// argument (SPEC 2.6 to 2.8), and the command's own words (SPEC 6.8).
func TestServe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode      string
		env       []string
		tool      string
		arguments map[string]any
		want      string
		isError   bool
		limit     float64 // that fired, in the outcome
		total     float64 // of the call, in the outcome
	}{
		"fine":           {"fine", nil, "tlc_check", nil, "no error found, and everything was searched", false, 0, 0},
		"error in model": {"wrong", nil, "tlc_smoke", map[string]any{"model": "deadlock"}, "the model is wrong: assertion violated", false, 0, 0},
		"incomplete":     {"incomplete", nil, "tlc_check", nil, "the check is not complete", true, 0, 0},
		"its own code":   {"fails", nil, "tlc_smoke", nil, "failed: exit status 3", true, 0, 0},
		"environment":    {"silent", []string{"TLC_SMOKE_TIMEOUT_MS=4000"}, "tlc_smoke", nil, "Spin process timed out after 4000ms.", true, 4000, 4000},
		"request":        {"silent", []string{"TLC_EXPLORE_TIMEOUT_MS=3600000"}, "tlc_explore", map[string]any{"timeoutMs": 4000}, "Spin process timed out after 4000ms.", true, 4000, 4000},
		"no total":       {"silent", []string{"MCP_IDLE_TIMEOUT=3"}, "tlc_check", nil, "Spin process timed out after 3000ms without output.", true, 3000, 0},
		"no such model":  {"fine", nil, "tlc_smoke", map[string]any{"model": "nowhere.pml"}, `no file "nowhere.pml"`, true, 0, 0},
		"not installed":  {"fine", []string{"SPIN=no-such-spin"}, "tlc_check", nil, "apt-get install spin gcc", true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := program(t, dir, append(fakeTools(t, tc.mode), tc.env...), "serve")
			cs := connectTo(t, &mcp.CommandTransport{Command: cmd}, new(heard))
			text, isError, outcome := callTool(t.Context(), t, cs, tc.tool, tc.arguments)
			if !strings.Contains(text, tc.want) || isError != tc.isError {
				t.Errorf("isError %v, want %v and %q in:\n%s", isError, tc.isError, tc.want, text)
			}
			if stopped := strings.Contains(tc.want, "timed out"); stopped && (!strings.HasPrefix(text, tc.want) || outcome["exitCode"] != 124.0 || outcome["limitMs"] != tc.limit || outcome["totalMs"] != tc.total) {
				t.Errorf("%v:\n%s", outcome, text)
			}
			if err := cs.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir)
		})
	}
}

// A setting that makes no sense ends the program before it serves.
func TestServeRefusesBadSettings(t *testing.T) {
	t.Parallel()
	cmd := program(t, t.TempDir(), append(fakeTools(t, "fine"), "TLC_SMOKE_TIMEOUT_MS=soon"), "serve")
	out, err := cmd.CombinedOutput()
	if code := exitCode(t, err); code != exitUsage || !strings.Contains(string(out), `TLC_SMOKE_TIMEOUT_MS="soon"`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// SPEC 2.3: a setting that is corrected is logged by the call that it is for, and by nothing else.
func TestServeWarnsOnce(t *testing.T) {
	t.Parallel()
	cmd := program(t, t.TempDir(), append(fakeTools(t, "fine"), "TLC_SMOKE_TIMEOUT_MS=60000"), "serve")
	var log bytes.Buffer
	cmd.Stderr = &log
	cs := connectTo(t, &mcp.CommandTransport{Command: cmd}, new(heard))
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

// SPEC 3.11: a client that cancels has the search aborted, and nothing is left.
func TestServeAborts(t *testing.T) {
	t.Parallel()
	h := new(heard)
	cs := served(t, fakeSpin(t, "deaf"), calledWith(timeout.Config{}).policy, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			h.mu.Lock()
			searching := slices.ContainsFunc(h.all, func(p mcp.ProgressNotificationParams) bool { return strings.Contains(p.Message, "states") })
			h.mu.Unlock()
			if searching {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	params := &mcp.CallToolParams{Name: "tlc_check"}
	params.SetProgressToken("t")
	if _, err := cs.CallTool(ctx, params); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A real run tells its client how far it has come, and answers in its own words when it is stopped.
func TestSpinServed(t *testing.T) {
	t.Parallel()
	message := regexp.MustCompile(`^\d+ states, depth \d+, \d+ MiB$`)
	for total := 5 * time.Second; ; total *= 2 { // the compiler needs a part of it, which may be all of it
		h := new(heard)
		cs := served(t, realSpin(t), calledWith(timeout.Config{Total: total}).policy, h)
		text, isError, outcome := callTool(t.Context(), t, cs, "tlc_explore", nil)
		h.mu.Lock()
		all := h.all
		h.mu.Unlock()
		news, last := 0, -1.0
		for _, n := range all {
			if n.Progress <= last {
				t.Errorf("progress %v after %v", n.Progress, last)
			}
			last = n.Progress
			if message.MatchString(n.Message) {
				news++
			} else if n.Message != "" {
				t.Errorf("message %q", n.Message)
			}
		}
		if news < 3 && total < generous {
			continue
		}
		if news < 3 || last < 10_000 {
			t.Errorf("%d messages of progress, up to %v states", news, last)
		}
		if !strings.HasPrefix(text, fmt.Sprintf("Spin process timed out after %dms.\n", total.Milliseconds())) || !isError ||
			outcome["exitCode"] != 124.0 || !strings.Contains(text, "Interrupted") || strings.Count(text, "Depth=") != 1 {
			t.Errorf("%v %v:\n%s", isError, outcome, text)
		}
		return
	}
}
