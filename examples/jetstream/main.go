// Jetstream compresses the files of a directory tree with three worker processes that share
// a queue of NATS JetStream, while one of them is killed and one gets stuck.
//
// Each file is a message. One worker is killed with SIGKILL in the middle of a file, and
// another hangs in one, as a read from a dead network share does. Nothing of that is lost,
// and nothing is done twice: the message of the killed worker is another's when its AckWait
// has passed, that of the stuck one as soon as its idle limit is reached, and what is there
// already is not put there again. At the end every compressed file is compared with its
// original.
//
// Usage, from the root of the repository:
//
//	go run ./examples/jetstream [-server URL] [-out DIR] [DIR]
//
// DIR is the tree, by default the source code of the Go compiler. The server is one within
// this program, unless -server names another; there, a stream is made and deleted again. The
// compressed files go to the directory of -out, which must be empty or not exist, and are
// deleted at the end without it.
//
// The exit code is 0 if every file was done once, 1 if not, 2 if the command line makes no
// sense, and 130 if you press Ctrl-C. ("go run" itself ends with 1 where the program does not
// end with 0.)
//
// The work, which knows nothing of queues and limits, is in compress.go; worker.go has the one
// call that puts it under both.
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

	"github.com/tooldeadline/tooldeadline/timeout"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

const usage = `usage: jetstream [-server URL] [-out DIR] [DIR]

Compresses the files below DIR, by default the source code of the Go compiler, with three
worker processes, of which one is killed and one gets stuck.

  -server URL   a NATS server with JetStream, such as nats://127.0.0.1:4222;
                by default one within this program
  -out DIR      where the compressed files stay; the directory must be empty or not exist
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(workerMain(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its surroundings as arguments. It returns the exit code.
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
			return fmt.Errorf("%d arguments: want one directory at the most", flags.NArg())
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
		return "", fmt.Errorf("no DIR given, and the Go installation cannot be asked for its source: go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src", "cmd", "compile"), nil
}

// mustBeEmpty makes the directory if there is none.
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
