// Quickstart shows what an execution under package timeout looks like to its caller.
//
// The tool is ordinary: an errgroup of a few workers hashes every file of a directory
// tree, and each worker calls heartbeat.Beat after each file. It is run four times:
//
//  1. It takes several times the idle limit and succeeds, because it keeps beating.
//  2. Its workers hang on a pipe that is never written to, and the idle limit stops them.
//     The error shows where they hang.
//  3. It keeps beating and would never end, and the total limit stops it.
//  4. The user stops it with Ctrl-C. Without a terminal the program cancels by itself.
//
// Usage, from the root of the repository:
//
//	go run ./examples/quickstart [PATH]
//
// PATH is the directory to hash, by default the source code of the Go installation.
// One round through a small tree takes less time than the idle limit, so the tool
// starts over at the end of a round, for as long as the run is to last.
//
// The exit code is 0 if all four ended as they should, 1 if one did not, 2 if PATH
// cannot be used, and 130 if Ctrl-C came before the fourth. ("go run" itself exits
// with 1 if the program does not exit with 0.)
//
// The tool, which knows nothing of limits, is in hash.go; the four runs are in
// cases.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The first Ctrl-C cancels ctx. It also ends the notification, so that a second
	// Ctrl-C ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], stdio.New(os.Stdout), stdio.New(os.Stderr)))
}

// run runs the program with the given arguments and streams, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: quickstart [PATH]\n\n"+
			"Hashes every file below the directory PATH, four times under limits.\n"+
			"Without PATH it is the source code of the Go installation.\n")
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if flags.NArg() > 1 {
		fmt.Fprintf(stderr, "quickstart: %d arguments, but at most one PATH is accepted\n", flags.NArg())
		flags.Usage()
		return exitUsage
	}

	var root string
	var err error
	if flags.NArg() == 1 {
		root = flags.Arg(0)
	} else if root, err = goSource(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return exitUsage
	}
	if err := checkTree(ctx, root); err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return exitUsage
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "quickstart: interrupted before the first run")
		return timeout.ExitAborted
	}

	out := &printer{w: stdout}
	code := showCases(ctx, root, cases(os.DirFS(root), osPipe), out)
	if out.err != nil {
		fmt.Fprintln(stderr, "quickstart: cannot write the report:", out.err)
		return exitFailed
	}
	return code
}

// showCases runs all cases and reports on each. It returns the exit code.
func showCases(ctx context.Context, root string, all []runCase, out *printer) int {
	start := time.Now()
	out.intro(root)
	var failed []int
	for i, c := range all {
		out.title(i+1, c)
		o := c.run(ctx, out)
		if ctx.Err() != nil && !c.takesCtrlC {
			out.outcome(o)
			out.printf("\nInterrupted in run %d; the runs after it are left out.\n", i+1)
			return timeout.ExitAborted
		}
		problem := c.check(o)
		out.outcome(o)
		out.verdict(problem)
		if problem != nil {
			failed = append(failed, i+1)
		}
	}
	if len(failed) > 0 {
		out.printf("\nFAILED: not every run ended as it should, see %v above.\n", failed)
		return exitFailed
	}
	out.printf("\nAll four runs ended as they should, in %.1f s.\n", time.Since(start).Seconds())
	return 0
}
