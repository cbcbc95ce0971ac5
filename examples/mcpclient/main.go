// Mcpclient calls one tool of an MCP server. It waits while there is progress, up to the limits of its
// flags, and then cancels the call.
//
//	go run ./examples/mcpclient [flags] TOOL [ARGUMENTS] -- COMMAND [ARG...]
//	go run ./examples/mcpclient [flags] -url URL TOOL [ARGUMENTS]
//
// ARGUMENTS is a JSON object. The server is COMMAND, which is started and used over its stdin and
// stdout, or it listens at URL. With the server in examples/mcpserver:
//
//	go build -o /tmp/ ./examples/mcpserver
//	go run ./examples/mcpclient search '{"pattern":"func main"}' -- /tmp/mcpserver -progress-interval 100ms
//
// On a terminal it draws a progress bar and shows the questions of the server to the person. Otherwise it prints lines
// to stderr, and does not declare support for questions. The result of the tool goes to stdout, and the outcome of the
// call to stderr. The exit code is
//
//	0    the tool succeeded
//	1    the tool failed, or any other error
//	2    the command line is wrong
//	124  a limit was exceeded, here or at the server
//	126  COMMAND cannot be executed
//	127  COMMAND was not found
//	130  aborted, as with Ctrl-C
//
// ("go run" itself exits with 1 if the program does not exit with 0.)
//
// call.go has the limits and the call, bar.go and lines.go show the progress, ask.go asks.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

const exitUsage = 2

const usage = `Usage: mcpclient [FLAG]... TOOL [ARGUMENTS] -- COMMAND [ARG]...
  or:  mcpclient [FLAG]... -url URL TOOL [ARGUMENTS]
Start the MCP server COMMAND, or connect to the one at URL, and call one of its tools.
ARGUMENTS is a JSON object.

`

type options struct {
	limits    request.Limits
	protocol  string
	url       string
	standing  bool     // try for as long as it takes to reach the server
	command   []string // empty if there is a url
	tool      string
	arguments map[string]any
}

func main() {
	// Without this, a write to a closed stdout or stderr would end the program with SIGPIPE, before it ends its server.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// After the first signal, stop restores the default action, so that a second signal ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:]))
}

// run runs the program with the given arguments, and returns the exit code.
func run(ctx context.Context, args []string) int {
	o, err := parse(args, stdio.New(os.Stderr))
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stdio.New(os.Stderr), "mcpclient:", err)
		return exitUsage
	}
	return call(ctx, o, os.Stdin, os.Stdout, os.Stderr)
}

func parse(args []string, stderr io.Writer) (o options, _ error) {
	f := flag.NewFlagSet("mcpclient", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&o.limits.Timeout, "timeout", time.Minute, "`DURATION` to wait for the answer; 0 is no limit")
	f.BoolVar(&o.limits.ResetOnProgress, "reset-on-progress", true, "restart -timeout with each progress notification")
	f.DurationVar(&o.limits.MaxTotal, "max-total", 0, "total `DURATION` to wait; 0 is no limit")
	f.StringVar(&o.protocol, "protocol", "", "protocol `VERSION` to offer (default the latest of the SDK)")
	f.StringVar(&o.url, "url", "", "`URL` of a server that speaks Streamable HTTP")
	f.BoolVar(&o.standing, "wait-for-server", false, "try again every 30 s while the server cannot be reached")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, usage)
		f.SetOutput(stderr)
		f.PrintDefaults()
	}
	if err != nil {
		return o, err
	}
	call, command := f.Args(), []string(nil)
	for i, a := range call {
		if a == "--" {
			call, command = call[:i], call[i+1:]
			break
		}
	}
	switch {
	case len(call) < 1 || len(call) > 2:
		return o, errors.New("want TOOL and at most one JSON object as ARGUMENTS; see -help")
	case (o.url == "") == (len(command) == 0):
		return o, errors.New("want a server, either -- COMMAND or -url URL; see -help")
	}
	o.command, o.tool, o.arguments = command, call[0], map[string]any{}
	if len(call) == 2 {
		if err := json.Unmarshal([]byte(call[1]), &o.arguments); err != nil {
			return o, fmt.Errorf("ARGUMENTS: want a JSON object: %w", err)
		}
	}
	return o, nil
}
