// Package machine lets a test run the commands of package procgroup in a simulation in place of this system. The test
// puts the simulation, a Machine, into the context.
package machine

import (
	"context"
	"io"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/internal/sdnotify"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/capture"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/proctree"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/waits"
)

// A Machine is a simulation of the system that runs commands.
type Machine interface {
	// Start starts cmd in the simulation, as proctree.StartWithin does on this system.
	Start(ctx context.Context, cmd *exec.Cmd) (proctree.Tree, error)
	// Pipe creates a pipe in the simulation. It is a [capture.Source].
	Pipe() (r capture.ReadEnd, w io.WriteCloser, read func(fd uintptr, b []byte) (int, error))
	// Socket creates the socket of procgroup.Notify for the next command that Start starts.
	Socket() sdnotify.Socket
	// WatchInput is like waits.Watch, for the standard input with which the tree was started. It returns nil if a
	// command never has to wait for that input.
	WatchInput(tree proctree.Tree) waits.Meter
}

type key struct{}

// With returns a copy of ctx in which procgroup runs commands on m.
func With(ctx context.Context, m Machine) context.Context { return context.WithValue(ctx, key{}, m) }

// Of returns the Machine that With has put into ctx, or nil if commands run on this system.
func Of(ctx context.Context) Machine {
	m, _ := ctx.Value(key{}).(Machine)
	return m
}
