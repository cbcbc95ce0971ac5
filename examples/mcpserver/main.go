// Mcpserver is an MCP server whose tools cannot hang their client: each has limits, reports progress,
// and answers in time with what it has so far, whatever happens.
//
//	go run ./examples/mcpserver               on stdin and stdout, as hosts start it
//	go run ./examples/mcpserver -http :8080   at http://127.0.0.1:8080/mcp
//
// README.md describes how to add it to a host, what to ask, and what to expect.
// server.go has the line that adds the limits to the tools, and policy.go has the limits.
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
	"github.com/tooldeadline/tooldeadline/procgroup/host"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

const exitUsage = 2

type options struct {
	http     string        // address; empty means stdio
	interval time.Duration // between progress notifications; 0 means the default
	approval time.Duration // time that a person has to approve
	calls    int64         // most calls at once
	inspect  string        // address of the page of running calls; empty means none
	soft     time.Duration // time after which a call becomes a task; 0 means never
	goesOn   time.Duration // time after which a call is continued, for clients without tasks; 0 means never
	config   string        // file of limits; empty means none
	tasks    *task.Tasks
}

func main() {
	procgroup.HelperMain() // see containment
	// Every signal that ends this program has to stop its commands first.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Without this, a write to a closed stdout would kill the program with SIGPIPE. With it, the write returns an
	// error. The signal is not ignored, because commands would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], stdio.New(os.Stderr))
	stop()
	os.Exit(code)
}

// run runs the program with the given arguments, and returns the exit code.
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
		allowTasks(p, o.soft)
	}
	if o.config != "" {
		if err := readSettings(p, o.config); err != nil {
			fmt.Fprintf(stderr, "mcpserver: -config: %s: %v\n", o.config, err)
			return exitUsage
		}
	}
	if becomeTasks(p) {
		o.tasks = &task.Tasks{MaxRunning: int(o.calls)}
		defer o.tasks.Close()
	}
	// SessionTimeout returns an error for invalid settings in the environment, which is reported once, before any call.
	session, err := p.SessionTimeout()
	if err != nil {
		fmt.Fprintln(stderr, "mcpserver:", err)
		return exitUsage
	}
	explain(p, logger)
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
		err = serveHTTP(ctx, s, o.http, session, stderr, logger)
	} else {
		// The server ends with its host, also where another process holds stdin open.
		hosted, unwatch := host.Context(ctx)
		defer unwatch()
		err = mcpsdk.Serve(hosted, s, &mcp.StdioTransport{}, 0)
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
	f.StringVar(&o.http, "http", "", "serve Streamable HTTP at this `ADDRESS` instead of stdin and stdout; without a host it is on 127.0.0.1")
	f.DurationVar(&o.interval, "progress-interval", 10*time.Second, "shortest `DURATION` between two progress notifications of a call")
	f.DurationVar(&o.approval, "approval-limit", 30*time.Second, "`DURATION` that a person has to approve")
	f.Int64Var(&o.calls, "calls", 16, "largest `NUMBER` of calls that run at once; the others wait")
	f.StringVar(&o.config, "config", "", "read limits from this YAML or JSON `FILE`")
	f.StringVar(&o.inspect, "inspect", "", "show running calls to browsers on this machine, at http://`ADDRESS`/debug/tools")
	f.DurationVar(&o.soft, "tasks", 0, "answer calls that take longer than this `DURATION` with a task, if the client supports tasks; 0 means never")
	f.DurationVar(&o.goesOn, "continue", 0, "answer calls that take longer than this `DURATION` with \"Still running\", for other clients; 0 means never")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.approval <= 0 || o.interval <= 0 || o.calls <= 0 || o.soft < 0 || o.goesOn < 0 {
		fmt.Fprintln(stderr, "mcpserver: want no arguments, and durations and numbers above 0")
		f.Usage()
		return o, errors.New("usage")
	}
	return o, nil
}
