//go:build !linux

package proctree

import (
	"context"
	"os/exec"
)

// StartWithin is Start with limits on what the tree uses. It returns those in force.
func StartWithin(ctx context.Context, cmd *exec.Cmd, want Kind, l Limits) (Tree, Limits, error) {
	if l.any() && !l.BestEffort {
		return nil, Limits{}, refused(unsupported("limits on a tree need a control group of Linux"))
	}
	t, err := Start(ctx, cmd, want)
	return t, Limits{}, err
}
