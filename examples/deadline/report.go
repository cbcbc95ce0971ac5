package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
)

// A reporter writes the program's messages.
type reporter struct {
	name string // as the program was called

	mu     sync.Mutex
	out    io.Writer
	failed bool // a message could not be written
}

func newReporter(name string) *reporter { return &reporter{name: name, out: os.Stderr} }

// say writes one line, in one piece.
func (r *reporter) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := fmt.Fprintf(r.out, "%s: %s\n", r.name, fmt.Sprintf(format, args...))
	r.failed = r.failed || err != nil || wasClosed(2)
}

// exitCode is code, or that of a failure where messages were lost.
func (r *reporter) exitCode(code int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed {
		return exitFailed
	}
	return code
}

// redirect sends messages to w from now on.
func (r *reporter) redirect(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = w
}

// refuse answers an error of parse and gives the exit code.
func (r *reporter) refuse(err error) int {
	switch {
	case errors.Is(err, errHelp):
		return r.print(strings.ReplaceAll(help, "{name}", r.name))
	case errors.Is(err, errVersion):
		return r.print("deadline (tooldeadline) " + version() + "\n")
	}
	if err.Error() != "" {
		r.say("%v", err)
	}
	fmt.Fprintf(os.Stderr, "Try '%s --help' for more information.\n", r.name)
	return exitFailed
}

// print writes to the standard output and gives the exit code.
func (r *reporter) print(text string) int {
	_, err := os.Stdout.WriteString(text)
	if wasClosed(1) {
		err = syscall.EBADF
	}
	if err != nil {
		r.say("write error: %s", reason(err))
		return exitFailed
	}
	return 0
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

//go:embed help.txt
var help string
