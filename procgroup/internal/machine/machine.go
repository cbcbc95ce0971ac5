// Package machine is the seam between package procgroup and what its commands run on: this system, or a simulation
// that a test has put into the context.
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

// A Machine runs commands in a simulation, in place of this system.
type Machine interface {
	// Start starts cmd in the simulation, as proctree.StartWithin does on this system.
	Start(ctx context.Context, cmd *exec.Cmd) (proctree.Tree, error)
	// Pipe makes a pipe, as a [capture.Source] does.
	Pipe() (r capture.ReadEnd, w io.WriteCloser, read func(fd uintptr, b []byte) (int, error))
	// Socket makes the socket of procgroup.Notify for the command that is started next.
	Socket() sdnotify.Socket
	// WatchInput does what waits.Watch does, for the standard input that the tree was started with. It returns nil
	// if that input never makes a command wait.
	WatchInput(tree proctree.Tree) waits.Meter
}

type key struct{}

// With returns a context whose commands run on m.
func With(ctx context.Context, m Machine) context.Context { return context.WithValue(ctx, key{}, m) }

// Of returns the machine of a context, or nil, which means this system.
func Of(ctx context.Context) Machine {
	m, _ := ctx.Value(key{}).(Machine)
	return m
}
