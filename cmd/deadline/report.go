package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
)

// stuck is how long a terminal or a pipe may take to accept a message.
const stuck = time.Second

// A reporter writes the program's messages.
type reporter struct {
	name string // the name by which the program was called, with which each message begins

	mu      sync.Mutex // guards the fields below
	out     io.Writer
	pending chan error // receives the result of the last write; nil if the result is known
	failed  bool       // a message or output of the command could not be written
}

func newReporter(name string) *reporter { return &reporter{name: name, out: stdio.New(os.Stderr)} }

// say writes a message as one line, with a single write. If nobody reads it within the time stuck, the message is lost,
// because a signal that it announces must not be delayed. While an earlier message is unread, later messages are
// dropped at once, so that delays do not add up.
func (r *reporter) say(format string, args ...any) { r.sayWithin(0, format, args...) }

// sayWithin is like say, but first waits up to last for an earlier message to be read.
func (r *reporter) sayWithin(last time.Duration, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	deadline := time.After(stuck)
	if !r.written(time.After(last)) {
		return
	}
	line, out, pending := fmt.Sprintf("%s: %s\n", r.name, fmt.Sprintf(format, args...)), r.out, make(chan error, 1)
	r.pending = pending
	go func() {
		blockSIGPIPE()
		_, err := io.WriteString(out, line)
		pending <- err
	}()
	r.written(deadline)
	r.failed = r.failed || wasClosed(2)
}

// written waits until the last message has been written. It returns false if deadline fires first. The caller holds
// r.mu.
func (r *reporter) written(deadline <-chan time.Time) bool {
	if r.pending == nil {
		return true
	}
	var err error
	select {
	case err = <-r.pending:
	case <-deadline:
		select { // select may have chosen deadline, though both were ready
		case err = <-r.pending:
		default:
			r.failed = true
			return false
		}
	}
	r.pending = nil
	r.failed = r.failed || err != nil
	return true
}

// fail writes a message about a failure, after waiting up to stuck for an earlier message to be read, and makes
// hasFailed return true.
func (r *reporter) fail(format string, args ...any) {
	r.sayWithin(stuck, format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

// hasFailed reports whether fail was called or a message could not be written.
func (r *reporter) hasFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// redirect makes w the destination of later messages.
func (r *reporter) redirect(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = w
}

// refuse handles an error of parse, and returns the exit code. It prints the help for errHelp, the version for
// errVersion, and otherwise a message.
func (r *reporter) refuse(err error) int {
	switch {
	case errors.Is(err, errHelp):
		return r.print(strings.ReplaceAll(help, "{name}", r.name))
	case errors.Is(err, errVersion):
		return r.print(versionText("deadline"))
	}
	if err.Error() != "" {
		r.say("%v", err)
	}
	fmt.Fprintf(r.out, "Try '%s --help' for more information.\n", r.name)
	return exitFailed
}

// print writes text to the standard output and returns the exit code.
func (r *reporter) print(text string) int {
	_, err := io.WriteString(stdio.New(os.Stdout), text)
	if wasClosed(1) {
		err = syscall.EBADF
	}
	if err != nil {
		r.say("write error: %s", reason(err))
		return exitFailed
	}
	return 0
}

//go:embed help.txt
var help string
