// Cluster runs two replicas of an MCP server behind a round-robin, with tasks that either of them
// answers for, until one is killed.
//
// Each request of the client goes to the replica whose turn it is. Calls become tasks; their status,
// their list, their result and their cancellation are asked of the replica that does not run
// them. At the end one replica is killed with SIGKILL, and the other says that its task has failed.
//
// Usage, from the root of the repository:
//
//	go run ./examples/cluster [-server URL]
//
// The tasks are kept in NATS JetStream: in a server within this program, unless -server names another;
// there, buckets are made and deleted again.
//
// The exit code is 0 if everything went as it should, 1 if not, 2 if the command line makes no
// sense, and 130 if you press Ctrl-C.
//
// replica.go is the server: what shares the tasks is four lines there. balance.go is the round-robin,
// client.go the client, and demo.go what they are made to do.
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
		code = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(code)
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d := demo{out: stdout, err: stderr}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&d.nats, "server", "", "a NATS server with JetStream, such as nats://127.0.0.1:4222; by default one within this program")
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
