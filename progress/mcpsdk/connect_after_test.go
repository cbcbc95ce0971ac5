package mcpsdk_test

import (
	"context"
	"net/http"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// Requests that are made in a handler of the session, with the handler's context, are
// not part of connecting any more.
func TestConnectIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(&mcp.ClientOptions{
			ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				_, err := req.Session.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
				return &mcp.ElicitResult{Action: "accept"}, err
			},
		})
		s := newTestServer()
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Hour}, nil)
		addTool(s, "slow", func(ctx context.Context, _ func(float64, string)) error { time.Sleep(time.Minute); return ctx.Err() })
		s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
			return &mcp.CallToolResult{}, err
		})
		cs, err := mcpsdk.Connect(t.Context(), c, inMemoryTo(t, s), &mcpsdk.ConnectOptions{Session: &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"}); err != nil {
			t.Error(err)
		}
		_ = cs.Close()
	})
}

// The context bounds Connect, and not the session: with SSE the SDK ties the two.
func TestConnectSessionOutlivesContext(t *testing.T) {
	s := transportServer(time.Minute)
	url := serveHTTP(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cs, err := mcpsdk.Connect(ctx, newTestClient(nil), func() (mcp.Transport, error) {
		return &mcp.SSEClientTransport{Endpoint: url}, nil
	}, &mcpsdk.ConnectOptions{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	cancel()
	for range 10 {
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancelled"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * ms)
	}
}

// A command that does not answer is made to end before Connect returns.
func TestConnectLeavesNoProcess(t *testing.T) {
	t.Parallel()
	var commands []*exec.Cmd
	_, err := mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
		cmd := stdioCommand("deaf")
		commands = append(commands, cmd)
		// The SDK waits for so long after each step, the last included: on a busy machine
		// less is too short for a process that was killed to be gone.
		return &mcp.CommandTransport{Command: cmd, TerminateDuration: 3 * time.Second}, nil
	}, &mcpsdk.ConnectOptions{Timeout: 200 * ms, Backoff: request.Backoff{Retries: -1}})
	timedOut(t, err, "connect")
	if len(commands) != 1 {
		t.Errorf("%d commands, want 1", len(commands))
	}
	for _, cmd := range commands {
		if cmd.ProcessState == nil {
			t.Errorf("process %d is left", cmd.Process.Pid)
		}
	}
}

// An error that no second try can mend ends the tries.
func TestConnectHopeless(t *testing.T) {
	for _, path := range []string{"no-such-command-anywhere", "/no/such/command", t.TempDir()} {
		tries := 0
		_, err := mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
			tries++
			return &mcp.CommandTransport{Command: exec.Command(path)}, nil
		}, nil)
		if err == nil || tries != 1 {
			t.Errorf("%s: %v after %d tries", path, err, tries)
		}
	}
}
