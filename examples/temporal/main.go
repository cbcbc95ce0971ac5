// The command temporal hashes the files of a tree in an activity of a Temporal workflow. It is a
// worker whose activities are under limits, and starts a workflow, so one command shows both.
//
//	temporal server start-dev
//	go run . -hang README.md ..
//
// At the file that -hang names, the first attempt hangs. It is stopped at the idle limit, where it
// runs, and the second attempt continues after the files that the first has hashed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
	"github.com/tooldeadline/tooldeadline/worker/temporalworker"
)

const queue = "tooldeadline-example"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], stdio.New(os.Stdout), stdio.New(os.Stderr)); err != nil {
		fmt.Fprintln(stdio.New(os.Stderr), "temporal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	flags.SetOutput(errOut)
	address := flags.String("address", client.DefaultHostPort, "`host:port` of the Temporal server")
	namespace := flags.String("namespace", client.DefaultNamespace, "namespace on that server")
	hang := flags.String("hang", "", "`name` of a file at which attempts hang")
	hangs := flags.Int("hangs", 1, "`number` of attempts that do")
	idle := flags.Duration("idle", 3*time.Second, "idle limit of the activity")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *idle <= 0 {
		return fmt.Errorf("got %q and an idle limit of %v: want one directory, and a limit above 0", flags.Args(), *idle)
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := client.DialContext(ctx, client.Options{HostPort: *address, Namespace: *namespace, Logger: log.NewStructuredLogger(logger)})
	if err != nil {
		return fmt.Errorf("no Temporal server at %s; \"temporal server start-dev\" starts one: %w", *address, err)
	}
	defer c.Close()

	w := worker.New(c, queue, options(*idle, logger))
	h := &hasher{hang: *hang, hangs: *hangs}
	w.RegisterActivity(h)
	w.RegisterWorkflow(hashTree)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()

	started, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, hashTree, dir)
	if err != nil {
		return err
	}
	var r report
	if err := started.Get(ctx, &r); err != nil {
		return err
	}
	for _, line := range r.Lines {
		fmt.Fprintln(out, line)
	}
	if r.Stopped != "" {
		return fmt.Errorf("stopped: %s, with %d files done", r.Stopped, len(r.Lines))
	}
	return nil
}

// options returns the worker's options. Only the interceptor is needed.
func options(idle time.Duration, logger *slog.Logger) worker.Options {
	return worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		temporalworker.Interceptor(temporalworker.Options{Policy: &policy.Policy{Default: &timeout.Config{Idle: idle}}, Logger: logger}),
	}}
}
