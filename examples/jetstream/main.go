// Jetstream compresses the files of a directory tree with three worker processes that share a queue of
// NATS JetStream. One of the workers is killed, and one gets stuck.
//
// Each file is a message. One worker is killed with SIGKILL in the middle of a file, and another hangs in a file, like
// a read from a dead network share. Every file is completed once: the message of the killed worker is redelivered after
// AckWait, the message of the stuck worker as soon as the idle limit fires, and a compressed file that exists is not
// replaced. At the end every compressed file is compared with its original.
//
// Usage, from the root of the repository:
//
//	go run ./examples/jetstream [-server URL] [-out DIR] [DIR]
//
// DIR is the tree, by default the source code of the Go compiler. The NATS server is embedded unless
// -server names another, where a stream is created and deleted again. The compressed files go to the
// directory of -out, which must be empty or not exist. Without -out they are deleted at the end.
//
// The exit code is 0 if every file was done once, 1 if not, 2 if the command line is wrong, and 130
// after Ctrl-C. ("go run" itself exits with 1 if the program does not exit with 0.)
//
// The work, which does not depend on queues and limits, is in compress.go. The call of natsworker.Run in worker.go adds
// both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

const usage = `Usage: jetstream [-server URL] [-out DIR] [DIR]

Compress the files below DIR, by default the source code of the Go compiler, with three
worker processes, of which one is killed and one gets stuck.

  -server URL   a NATS server with JetStream, such as nats://127.0.0.1:4222;
                by default an embedded one
  -out DIR      keep the compressed files in this directory, which must be empty or
                not exist
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(workerMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdio.New(os.Stdout), stdio.New(os.Stderr))
	stop()
	os.Exit(code)
}

// run runs the program with the given arguments and streams, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d := demo{out: stdout, err: stderr}
	flags := flag.NewFlagSet("jetstream", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	flags.StringVar(&d.server, "server", "", "")
	flags.StringVar(&d.to, "out", "", "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	err := func() (err error) {
		switch flags.NArg() {
		case 0:
			d.from, err = goCompiler(ctx)
		case 1:
			d.from = flags.Arg(0)
		default:
			return fmt.Errorf("%d arguments: want at most one directory", flags.NArg())
		}
		if err == nil {
			d.files, err = filesBelow(d.from)
		}
		if err == nil && d.to != "" {
			err = mustBeEmpty(d.to)
		}
		return err
	}()
	if err != nil {
		fmt.Fprintln(stderr, "jetstream:", err)
		return exitUsage
	}
	if d.to == "" {
		if d.to, err = os.MkdirTemp("", "jetstream"); err != nil {
			fmt.Fprintln(stderr, "jetstream:", err)
			return exitFailed
		}
		defer os.RemoveAll(d.to)
	}

	// The demo itself runs under an idle limit too: each event of a worker is a heartbeat.
	err = timeout.Run(ctx, d.run, timeout.UnboundedTotal(), timeout.WithName("jetstream"))
	if err != nil {
		fmt.Fprintln(stderr, "jetstream:", err)
		var stopped *timeout.Error
		if errors.As(err, &stopped) {
			return timeout.ExitCode(stopped)
		}
		return exitFailed
	}
	return 0
}

// goCompiler returns the directory with the source code of the Go compiler.
func goCompiler(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("no DIR given, and the Go source was not found: go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src", "cmd", "compile"), nil
}

// mustBeEmpty creates the directory if it does not exist, and returns an error if it is not empty.
func mustBeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("-out %q is not empty: it has %q; want an empty directory, or one that does not exist", dir, entries[0].Name())
	}
	return err
}
