//go:build !linux

package proctree

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// HelperMain returns at once: these systems do not have the Helper containment.
func HelperMain() {}

// StartWithin is like Start, with limits on what the tree uses. It returns the limits in force.
func StartWithin(ctx context.Context, cmd *exec.Cmd, want Kind, l Limits) (Tree, Limits, error) {
	if l.Any() && !l.BestEffort {
		return nil, Limits{}, refused(unsupported("limits on a tree need a control group of Linux"))
	}
	t, err := Start(ctx, cmd, want)
	return t, Limits{}, err
}

// HasTerminal reports false: on these systems no wait for input is known.
func HasTerminal(*exec.Cmd) bool { return false }

// A Foreign is a child that the caller has started. On these systems there is none, because Watch returns an error.
type Foreign struct{}

// Watch returns an error, which wraps errors.ErrUnsupported.
func Watch(*os.Process) (*Foreign, error) {
	return nil, unsupported("on " + runtime.GOOS + " there is no way to look at a process that was started elsewhere")
}

// Meter returns a Meter that measures nothing.
func (*Foreign) Meter(bool) work.Meter {
	return func() (work.Usage, bool) { return work.Usage{}, false }
}

// Snapshot lists no process.
func (*Foreign) Snapshot(time.Time) ([]Process, bool) { return nil, false }

// StackWriters returns nil.
func (*Foreign) StackWriters(time.Time, func(int) bool) func(time.Time) { return nil }

// Close does nothing.
func (*Foreign) Close() {}
