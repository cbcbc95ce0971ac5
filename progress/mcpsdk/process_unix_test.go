//go:build unix

package mcpsdk_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 6.32: another process makes the standard streams of a server non-blocking, and its client reads late.
func TestNonBlockingStreams(t *testing.T) {
	t.Parallel()
	sdktest.NonBlocking(t, child("long"))
}

// SPEC 3.22, with a real process and its streams.
func TestAnswersAtShutdown(t *testing.T) {
	t.Parallel()
	sdktest.AnswersAtShutdown(t, child("long"), 3, 3)
}

// SPEC 3.11: when the client's process dies, the server's tools are stopped and it exits.
func TestClientCrash(t *testing.T) {
	t.Parallel()
	sdktest.Crash(t, child("unlimited"))
}

// A command that does not answer is made to end before Connect returns.
func TestConnectLeavesNoProcess(t *testing.T) {
	t.Parallel()
	cmd := child("deaf")
	_, err := mcpsdk.Connect(t.Context(), newTestClient(nil), func() (mcp.Transport, error) {
		// The SDK waits for so long after each step, the last included: on a busy machine
		// less is too short for a process that was killed to be gone.
		return &mcp.CommandTransport{Command: cmd, TerminateDuration: 3 * time.Second}, nil
	}, &mcpsdk.ConnectOptions{Timeout: 200 * ms, Backoff: request.Backoff{Retries: -1}})
	if timedOut(t, err, "connect"); cmd.ProcessState == nil {
		t.Errorf("process %d is left", cmd.Process.Pid)
	}
}

// SPEC 6.8: the message and the output of a command that was stopped reach the client, however the tool
// is written.
func TestCommandsMessage(t *testing.T) {
	t.Parallel()
	const soon = 10 * time.Second // on a clock that stands still until the shell has said something
	type run func(opts ...procgroup.Option) error
	own, little := procgroup.Limits{Total: soon}, procgroup.Capture{Limit: 6}
	const text = "TLC process timed out after 10000ms.\nExit code 124.\n12 states\n"
	const wrote = "TLC wrote more than 6 bytes.\nExit code 153.\n12 states\n"
	for name, tt := range map[string]struct {
		fail  func(run) error
		total time.Duration
		want  string
	}{
		"its own limit":         {func(r run) error { return r(own) }, 0, text},
		"the limit of the tool": {func(r run) error { return r() }, soon, text},
		"in words of the tool":  {func(r run) error { return fmt.Errorf("model.tla: %w", r(own)) }, 0, "model.tla: " + text},
		"what it wrote":         {func(r run) error { return fmt.Errorf("model.tla: %w", r(little)) }, time.Minute, "model.tla: " + wrote},
	} {
		for _, typed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " typed=", typed), func(t *testing.T) {
				t.Parallel()
				s, now := newTestServer(), clock.NewMock()
				fail := func(ctx context.Context) error {
					said := sync.OnceFunc(func() { go now.Add(soon) })
					return tt.fail(func(opts ...procgroup.Option) error {
						opts = append([]procgroup.Option{procgroup.WithOptions(timeout.WithName("TLC"), timeout.WithClock(now)), procgroup.Capture{Each: func(procgroup.Chunk) { said() }}}, opts...)
						_, err := procgroup.Run(ctx, exec.Command("sh", "-c", "echo 12 states; exec sleep 60"), opts...)
						return err
					})
				}
				if typed {
					mcp.AddTool(s, &mcp.Tool{Name: "tlc"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
						return nil, nil, fail(ctx)
					})
				} else {
					addTool(s, "tlc", func(ctx context.Context, _ func(float64, string)) error { return fail(ctx) })
				}
				mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{Total: tt.total, Grace: time.Minute}, Clock: timeout.WithClock(now)})
				res := call(t, connectClient(t, newTestClient(nil), s, protocol2025), "tlc", nil)
				kind, code, limit := "total", 124.0, 10000.0
				if strings.Contains(tt.want, wrote) {
					kind, code, limit = "too_much_output", 153, 0
				}
				got := outcome(res)
				if d := cmp.Diff([]string{tt.want}, texts(res)); d != "" || !res.IsError || got["kind"] != kind || got["exitCode"] != code || got["limitMs"] != limit {
					t.Errorf("%v %v (-want +got):\n%s", res.IsError, got, d)
				}
			})
		}
	}
}
