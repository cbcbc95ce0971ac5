//go:build !linux

package proctree

import (
	"context"
	"os"
	"os/exec"
	"runtime"
)

// HelperMain does nothing, because only Linux has the Helper containment.
func HelperMain() {}

// StartWithin is like Start, but returns an error if l has a limit, unless l.BestEffort is set. The limits that it
// returns, those in force, are always zero.
func StartWithin(ctx context.Context, cmd *exec.Cmd, want Kind, l Limits) (Tree, Limits, error) {
	if l.Any() && !l.BestEffort {
		return nil, Limits{}, refused(unsupported("limits on a tree need a control group of Linux"))
	}
	t, err := Start(ctx, cmd, want)
	return t, Limits{}, err
}

// HasTerminal returns false. Only the search for waits for input, which these systems do not have, would use the
// result.
func HasTerminal(Tree) bool { return false }

// Watch returns an error that wraps errors.ErrUnsupported.
func Watch(*os.Process) (Foreign, error) {
	return nil, unsupported("on " + runtime.GOOS + " there is no way to look at a process that was started elsewhere")
}
