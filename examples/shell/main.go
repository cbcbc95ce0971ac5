// Shell is an MCP server, over stdin and stdout, that runs shell commands for a model. A call returns as soon as the command ends or waits for
// input. A command that runs for longer than its call continues as a job under its limits, and other calls read its
// output, write its input and stop it.
//
//	go run ./examples/shell
//
// README.md says what it does not protect from, and shows the answers to fifty commands that hang elsewhere.
// start.go starts a command, watch.go waits for it, and answer.go writes the answer to the model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/host"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
)

const exitUsage = 2

func main() {
	procgroup.HelperMain() // see options of start.go
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Without this, a write to a closed stdout would kill the program before it has ended its jobs in order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], stdio.New(os.Stderr))
	stop()
	os.Exit(code)
}

// run runs the program with the given arguments, and returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "shell:", err)
		return exitUsage
	}
	if err := forgetSecrets(s.env); err != nil {
		fmt.Fprintln(stderr, "shell:", err)
		return 1
	}
	out := stderr
	if s.log != "" {
		file, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(stderr, "shell: -log:", err)
			return exitUsage
		}
		defer file.Close()
		out = file
	}
	logger := slog.New(slog.NewJSONHandler(out, nil)) // JSON, so that no command can write lines of its own
	desk, err := newDesk(s, logger)
	if err != nil {
		fmt.Fprintln(stderr, "shell: -spill:", err)
		return 1
	}
	hosted, unwatch := host.Context(ctx) // ends with the host, even if another process holds stdin open
	defer unwatch()
	err = mcpsdk.Serve(hosted, newServer(desk), &mcp.StdioTransport{}, 0)
	if err := desk.close(); err != nil {
		logger.Error("end", slog.Any("error", err))
	}
	if err != nil {
		fmt.Fprintln(stderr, "shell:", err)
		return 1
	}
	return 0
}
