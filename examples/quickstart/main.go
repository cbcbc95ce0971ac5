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
// The exit code is 0 if all four ended as they should, 1 if one did not or the report
// could not be written, 2 if PATH cannot be used, and 130 if Ctrl-C came before the
// fourth. ("go run" itself exits with 1 if the program does not exit with 0.)
//
// The tool, which knows nothing of limits, is in hash.go; the four runs are in
// cases.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const usage = `usage: quickstart [PATH]

Hashes every file below the directory PATH, four times under limits.
Without PATH it is the source code of the Go installation.
`

func main() {
	// The first Ctrl-C cancels ctx. It also ends the notification, so that a second
	// Ctrl-C ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], stdio.New(os.Stdout), stdio.New(os.Stderr)))
}

// run runs the program with the given arguments and streams, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		if _, err := fmt.Fprint(stdout, usage); err != nil {
			fmt.Fprintln(stderr, "quickstart:", err)
			return 1
		}
		return 0
	}
	if len(args) > 1 || len(args) == 1 && strings.HasPrefix(args[0], "-") {
		fmt.Fprint(stderr, usage)
		return 2
	}
	root, err := goSource(ctx, args)
	if err == nil {
		err = checkTree(root, os.DirFS(root))
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "quickstart: interrupted before the first run")
		return timeout.ExitAborted
	}
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return 2
	}
	code, err := showCases(ctx, root, cases(os.DirFS(root), osPipe), stdout)
	if err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
	}
	return code
}

// goSource returns the argument or, if there is none, the directory with the source code of the Go installation.
func goSource(ctx context.Context, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("no PATH given, and the source of Go was not found: go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}

var errFound = errors.New("found")

// checkTree returns an error if root is not a directory with a file in it that can be read. fsys has the files in root.
func checkTree(root string, fsys fs.FS) error {
	info, err := os.Stat(root)
	if err == nil && info.IsDir() {
		err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && readable(fsys, path) {
				return errFound
			}
			return nil // WalkDir continues with the next file
		})
	}
	if err == errFound {
		return nil
	}
	if err == nil {
		err = errors.New("no files that can be read")
	}
	return fmt.Errorf("%q cannot be hashed: %w; want a directory with files in it, or no PATH", root, err)
}

func readable(fsys fs.FS, path string) bool {
	f, err := fsys.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err == nil || err == io.EOF
}
