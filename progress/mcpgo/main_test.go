package mcpgo_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/internal/harness"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// serverEnv makes the test binary a server over stdio, which says on stderr how its calls begin and end.
const serverEnv = "MCPGO_TEST_SERVER"

func child() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) == "" {
		harness.Main(m, nil, harness.Options{Parallel: 16})
	}
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(false))
	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{}, Hooks: timeout.Hooks{
		Started: func(_ context.Context, s timeout.Snapshot) { fmt.Fprintln(os.Stderr, "started", s.Tool) },
		Finished: func(_ context.Context, s timeout.Snapshot) {
			fmt.Fprintln(os.Stderr, "finished", s.Tool, timeout.ExitCode(s.Err))
		},
	}})
	s.AddTool(mcp.NewTool("silent"), silent)
	s.AddTool(mcp.NewTool("long"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		heartbeat.Beat(ctx)
		<-ctx.Done()
		return mcp.NewToolResultText(strings.Repeat("x", 128<<10)), nil // more than a pipe holds
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := mcpgo.Serve(ctx, server.NewStdioServer(s), os.Stdin, os.Stdout, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
