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
)

// A reporter writes the program's messages.
type reporter struct {
	name string // as the program was called

	mu  sync.Mutex
	out io.Writer
}

func newReporter(name string) *reporter { return &reporter{name: name, out: os.Stderr} }

// say writes one line, in one piece.
func (r *reporter) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "%s: %s\n", r.name, fmt.Sprintf(format, args...))
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
	r.redirect(os.Stderr)
	fmt.Fprintf(os.Stderr, "Try '%s --help' for more information.\n", r.name)
	return exitFailed
}

// print writes to the standard output and gives the exit code.
func (r *reporter) print(text string) int {
	err := errStdoutClosed()
	if err == nil {
		_, err = os.Stdout.WriteString(text)
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
