package mcpgo_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

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
	before := runtime.NumGoroutine()
	code := m.Run()
	if code == 0 {
		code = leaked(before)
	}
	os.Exit(code)
}

// leaked waits for goroutines that are on their way out.
func leaked(before int) (code int) {
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "%d goroutines, want at most %d:\n%s\n", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			return 1
		}
	}
	return 0
}
