// Tlc runs a model checker as the tools of a server would: each tool has limits of its own, and
// whatever happens, the caller gets an answer in time, with the findings so far, and nothing is
// left running.
//
// The tools and their limits are those of a server for TLA+ and its checker TLC. Here
// the checker is Spin, because it is in every Linux distribution; from a model it
// generates a program in C that searches all states the model can get into.
//
//	go run ./examples/tlc demo
//	go run ./examples/tlc serve
//	go run ./examples/tlc check   [-timeout-ms N] [MODEL]
//	go run ./examples/tlc smoke   [-timeout-ms N] [MODEL]
//	go run ./examples/tlc explore [-timeout-ms N] [MODEL]
//
// Demo shows in a quarter of a minute every way in which a tool can end. Check searches
// everything, for as long as it makes progress. Smoke looks only so far and takes two minutes at
// most. Explore searches a part of a state space that is too big for the memory, for ten
// minutes. Serve is an MCP server over stdin and stdout with these tools: tlc_check, tlc_smoke
// and tlc_explore. MODEL is a file in Promela, or one of the models that are built in: correct,
// deadlock, assertion, huge.
//
// Ctrl-C aborts the tool, with all the processes it has started. The exit code is
//
//	0    nothing wrong was found
//	1    any other error, such as a check that could not be completed
//	2    the command line or a setting makes no sense
//	12   the model is wrong, and the report says how (it is TLC's code for that)
//	124  stopped by a limit
//	126  Spin or the C compiler cannot be executed
//	127  Spin or the C compiler is not installed
//	130  aborted
//
// and otherwise that of the program that failed. ("go run" itself exits with 1 if the
// program does not exit with 0.)
//
// policy.go has the limits, checker.go the commands, pan.go the meaning of their output and
// serve.go the server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const exitUsage = 2

const usage = `usage: tlc check|smoke|explore [-timeout-ms N] [MODEL]
       tlc demo
       tlc serve

  check     search every state, for as long as there is progress
  smoke     search to a small depth, for 2 minutes at most
  explore   search a part of a huge state space, for 10 minutes at most
  demo      show every way in which a tool can end, in about 15 s
  serve     serve the three tools over MCP, on stdin and stdout

MODEL is a file in Promela, the language of Spin, or one of the built-in models:
correct, deadlock, assertion, huge.

  -timeout-ms N   the total limit of this run in milliseconds, up to the tool's ceiling

Environment: TLC_SMOKE_TIMEOUT_MS, TLC_EXPLORE_TIMEOUT_MS (milliseconds), MCP_TIMEOUT,
MCP_IDLE_TIMEOUT (seconds); 0 switches a limit off. SPIN and CC name the programs.
`

func main() {
	// Every way to end this program from outside has to stop the checker first, which
	// runs in a process group of its own. Stopping is bounded, so nothing is needed to
	// hurry it along. SIGPIPE is there for "| head": output that nobody reads any more
	// would end the program on the spot.
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	code := run(ctx, os.Args[1:], stdio.New(os.Stdout), stdio.New(os.Stderr))
	stop()
	os.Exit(code)
}

// run is main with its environment as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	flags := flag.NewFlagSet("tlc "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	var request time.Duration
	t, known := tools[args[0]]
	switch {
	case known:
		flags.Func("timeout-ms", "", func(s string) (err error) {
			request, err = parseRequest(s)
			return err
		})
	case args[0] == "demo", args[0] == "serve":
	case args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help":
		fmt.Fprint(stderr, usage)
		return 0
	default:
		fmt.Fprintf(stderr, "tlc: there is no tool %q\n%s", args[0], usage)
		return exitUsage
	}
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}

	out := &printer{w: stdout}
	if !known {
		if flags.NArg() > 0 {
			fmt.Fprintf(stderr, "tlc: %s takes no arguments\n%s", args[0], usage)
			return exitUsage
		}
		if args[0] == "serve" {
			err := serveStdio(ctx, newChecker(os.LookupEnv), newLogger(stderr))
			if err == nil {
				return 0
			}
			fmt.Fprintln(stderr, "tlc:", err)
			if bad := (*timeout.ConfigError)(nil); errors.As(err, &bad) {
				return exitUsage
			}
			return 1
		}
		return exitWith(demo(ctx, newChecker(os.LookupEnv), demoLimits, out), out, stderr)
	}

	m, err := loadModel(flags.Args(), t.model)
	if err != nil {
		fmt.Fprintln(stderr, "tlc:", err)
		return exitUsage
	}
	by := caller{policy: limitsOfTools(newLogger(stderr)), request: request, every: 2 * time.Second}
	f, err := t.call(ctx, by, newChecker(os.LookupEnv), m, out)
	if bad := (*timeout.ConfigError)(nil); errors.As(err, &bad) {
		fmt.Fprintln(stderr, "tlc:", err)
		return exitUsage
	}
	out.finding(f, err)
	out.output(f, false)
	return exitWith(err, out, stderr)
}

// exitWith returns the exit code for err, which has been printed, unless printing failed.
func exitWith(err error, out *printer, stderr io.Writer) int {
	code := timeout.ExitCode(err)
	if werr := out.writeError(); werr != nil {
		fmt.Fprintln(stderr, "tlc: cannot write the report:", werr)
		return max(code, 1)
	}
	return code
}
