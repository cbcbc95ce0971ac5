package mcpsdk_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// modeEnv makes the test binary a server over stdio, or what should be one.
const modeEnv = "MCPSDK_TEST_MODE"

func child(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeEnv+"="+mode, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		if err := serve(mode); err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	harness.Main(m, nil, harness.Options{Parallel: 16})
}

func serve(mode string) error {
	s := newTestServer()
	switch mode {
	case "deaf": // does not read, and ends only when it is made to
		time.Sleep(time.Minute)
		os.Exit(1)
	case "long": // ends in order on a signal
		s.AddTool(&mcp.Tool{Name: "long", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			heartbeat.Beat(ctx)
			<-ctx.Done()
			return textResult(strings.Repeat("x", 128<<10)), nil // more than a pipe holds
		})
		mcpsdk.Install(s, nil)
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return mcpsdk.Serve(ctx, s, &mcp.StdioTransport{}, 0)
	}
	// unlimited says on stderr how each call ends.
	addHang(s, "silent")
	mcpsdk.Install(s, &mcpsdk.Options{Limits: &timeout.Config{}, Hooks: timeout.Hooks{
		Started: func(_ context.Context, s timeout.Snapshot) { fmt.Fprintln(os.Stderr, "started", s.Tool) },
		Finished: func(_ context.Context, s timeout.Snapshot) {
			fmt.Fprintln(os.Stderr, "finished", s.Tool, timeout.ExitCode(s.Err))
		},
	}})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !strings.Contains(err.Error(), "closed") {
		return err
	}
	return nil
}
