// Mcpserver is an MCP server whose tools cannot hang their client: each has limits, reports
// progress, and answers in time with what it has, whatever happens in it.
//
//	go run ./examples/mcpserver               over stdin and stdout, as hosts start it
//	go run ./examples/mcpserver -http :8080   at http://127.0.0.1:8080/mcp
//
// README.md says how to add it to a host, what to ask it there, and what will be seen.
// server.go has the line that puts the limits around the tools, and policy.go the limits.
// The tools are in command.go, search.go, approve.go and stuck.go.
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
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

const exitUsage = 2

type options struct {
	http     string        // address; empty is stdio
	interval time.Duration // between progress notifications; 0 is the default
	approval time.Duration // how long a person may take
	calls    int64         // how many may run at once
	inspect  string        // address of the page that shows what runs; empty is none
	soft     time.Duration // after which a call becomes a task; 0 is never
	goesOn   time.Duration // after which it is continued, for clients without tasks; 0 is never
	tasks    *task.Tasks
}

func main() {
	procgroup.HelperMain() // see containment
	// Every way to end this program from outside has to stop its commands first.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Without this the program would die on the spot where its stdout is closed. A client
	// that has gone is an error of the write to it. Ignoring the signal instead would be
	// inherited by the commands.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	p := limits(o.approval, logger)
	if o.soft > 0 {
		o.tasks = task.New(task.WithMaxRunning(int(o.calls)))
		defer o.tasks.Close()
		allowTasks(p, o.soft)
	}
	// What is wrong in the environment is said now, and not with each call.
	limits, err := longest(p)
	if err != nil {
		fmt.Fprintln(stderr, "mcpserver:", err)
		return exitUsage
	}
	if o.inspect != "" {
		stop, err := servePage(o.inspect, stderr, logger)
		if err != nil {
			fmt.Fprintln(stderr, "mcpserver: -inspect:", err)
			return exitUsage
		}
		defer stop()
	}
	s := newServer(p, o, logger)
	if o.http != "" {
		err = serveHTTP(ctx, s, o.http, limits, stderr, logger)
	} else {
		err = mcpsdk.Serve(ctx, s, &mcp.StdioTransport{}, 0)
	}
	if err != nil {
		fmt.Fprintln(stderr, "mcpserver:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (o options, _ error) {
	f := flag.NewFlagSet("mcpserver", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.http, "http", "", "serve Streamable HTTP at this `address`, on 127.0.0.1 where it names no host, instead of stdin and stdout")
	f.DurationVar(&o.interval, "progress-interval", 10*time.Second, "the shortest time between two progress notifications of a call")
	f.DurationVar(&o.approval, "approval-limit", progress.DefaultAwaitLimit, "how long a person may take to approve")
	f.Int64Var(&o.calls, "calls", 16, "how many calls may run at once; the others wait")
	f.StringVar(&o.inspect, "inspect", "", "show what runs, to browsers of this machine, at http://`address`/debug/tools")
	f.DurationVar(&o.soft, "tasks", 0, "answer calls that take longer than this with a task, to clients that know tasks; 0 is never")
	f.DurationVar(&o.goesOn, "continue", 0, "answer calls that take longer than this with \"Still running\", to the other clients; 0 is never")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.approval <= 0 || o.interval <= 0 || o.calls <= 0 || o.soft < 0 || o.goesOn < 0 {
		fmt.Fprintln(stderr, "mcpserver: no arguments are taken, and durations and numbers must be above 0")
		f.Usage()
		return o, errors.New("usage")
	}
	return o, nil
}
