// Mcpclient calls one tool of an MCP server. Its limits are those that its flags set: it waits
// for as long as there is progress, up to a limit, and then cancels the call.
//
//	go run ./examples/mcpclient [flags] TOOL [ARGUMENTS] -- COMMAND [ARG...]
//	go run ./examples/mcpclient [flags] -url URL TOOL [ARGUMENTS]
//
// ARGUMENTS is a JSON object. The server is COMMAND, which is started and spoken to over its
// stdin and stdout, or what listens at URL. With the server beside this program:
//
//	go build -o /tmp/ ./examples/mcpserver
//	go run ./examples/mcpclient search '{"pattern":"func main"}' -- /tmp/mcpserver -progress-interval 100ms
//
// On a terminal it draws a progress bar, and passes on what the server asks the person;
// elsewhere it prints lines to stderr, and the server learns that nobody can be asked. What
// the tool returns goes to stdout, and what became of the call to stderr. It ends with
//
//	0    the tool succeeded
//	1    it did not, or any other error
//	2    the command line makes no sense
//	124  a limit was exceeded, here or at the server
//	126  COMMAND cannot be executed
//	127  COMMAND was not found
//	130  aborted, as with Ctrl-C
//
// ("go run" itself ends with 1 where the program does not end with 0.)
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

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

const exitUsage = 2

const usage = `usage: mcpclient [flags] TOOL [ARGUMENTS] -- COMMAND [ARG...]
       mcpclient [flags] -url URL TOOL [ARGUMENTS]

Calls a tool of the MCP server that COMMAND is, or that listens at URL. ARGUMENTS is a
JSON object.

`

type options struct {
	limits    mcpsdk.ClientLimits
	protocol  string
	url       string
	command   []string // where there is no url
	tool      string
	arguments map[string]any
}

func main() {
	// Without this the program would die on the spot, before its server has, where nobody
	// reads what it prints.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// A second signal ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:]))
}

// run is main with the signals and the arguments. It returns the exit code.
func run(ctx context.Context, args []string) int {
	o, err := parse(args, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "mcpclient:", err)
		return exitUsage
	}
	return call(ctx, o, os.Stdin, os.Stdout, os.Stderr)
}

func parse(args []string, stderr io.Writer) (o options, _ error) {
	f := flag.NewFlagSet("mcpclient", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&o.limits.Timeout, "timeout", request.DefaultTimeout, "how long to wait for the answer; 0 is no limit")
	f.BoolVar(&o.limits.ResetOnProgress, "reset-on-progress", true, "start to wait anew with each progress notification")
	f.DurationVar(&o.limits.MaxTotal, "max-total", 0, "how long to wait in all; 0 is no limit")
	f.StringVar(&o.protocol, "protocol", "", "the `version` of the protocol to offer; the SDK's latest where it is left out")
	f.StringVar(&o.url, "url", "", "the `URL` of a server with Streamable HTTP")
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
		return o, errors.New("want TOOL, and at most one JSON object as its ARGUMENTS; see -help")
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
