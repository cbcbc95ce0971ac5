package mcpgo_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/internal/leftovers"
	"github.com/tooldeadline/tooldeadline/internal/waiting"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
)

// serverEnv makes the test binary a stdio server with the tools of newServer.
const serverEnv = "MCPGO_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := mcpgo.Serve(ctx, server.NewStdioServer(newServer()), os.Stdin, os.Stdout, 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	waiting.Parallel(16)
	os.Exit(leftovers.Main(m))
}
