// Cluster runs two replicas of an MCP server behind a round-robin proxy. Either replica answers
// requests about all tasks, until one is killed.
//
// Each request of the client goes to the next replica in turn. Calls become tasks. The client asks the
// replica that does not run a task for its status, its result and its cancellation. At the end one
// replica is killed with SIGKILL, and the other reports that its task has failed.
//
// Usage, from the root of the repository:
//
//	go run ./examples/cluster [-server URL]
//
// The tasks are kept in NATS JetStream: in an embedded server, or in the server of -server, where
// buckets are created and deleted again.
//
// The exit code is 0 if everything went as expected, 1 if not, 2 if the command line is wrong, and 130
// after Ctrl-C.
//
// replica.go is the server, four lines of which share the tasks. balance.go is the round-robin proxy,
// client.go is the client, and demo.go is the script.
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

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var code int
	if len(os.Args) > 1 && os.Args[1] == replicaCommand {
		code = replicaMain(ctx, os.Args[2:])
	} else {
		code = run(ctx, os.Args[1:], stdio.New(os.Stdout), stdio.New(os.Stderr))
	}
	stop()
	os.Exit(code)
}

// run runs the program with the given arguments and streams, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d := demo{out: stdout, err: stderr}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&d.nats, "server", "", "a NATS server with JetStream, such as nats://127.0.0.1:4222; by default an embedded one")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(stderr, "cluster:", err)
	}
	if err != nil {
		return exitUsage
	}
	// Each step of the demo is a heartbeat.
	err = timeout.Run(ctx, d.run, timeout.Config{Idle: 2 * time.Minute}, timeout.WithName("cluster"))
	if err != nil {
		fmt.Fprintln(stderr, "cluster:", err)
		var stopped *timeout.Error
		if errors.As(err, &stopped) {
			return timeout.ExitCode(stopped)
		}
		return exitFailed
	}
	return 0
}
