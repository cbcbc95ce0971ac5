//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package proctree

import (
	"context"
	"os/exec"
	"time"
)

// A leaderTree is a Tree of the leader alone: it does not find the processes that the leader has started.
type leaderTree struct {
	blind
	waited
}

func Start(_ context.Context, cmd *exec.Cmd, want Kind) (Tree, error) {
	if want != Auto && want != Leader {
		return nil, unavailable(want, unsupported("not on this system"))
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t := &leaderTree{waited: waited{cmd: cmd}}
	t.begin()
	return t, nil
}

func (t *leaderTree) Contained() Kind { return Leader }

func (t *leaderTree) Signal(sig Signal) error { return t.cmd.Process.Signal(sig) }

func (t *leaderTree) Ask(Signal) bool { return false }

func (t *leaderTree) Alive() bool { return false }

func (t *leaderTree) Kill(deadline time.Time) (survivors, _ []int) {
	_ = t.cmd.Process.Kill()
	if !t.Wait(context.Background(), deadline) {
		return []int{t.cmd.Process.Pid}, nil
	}
	return nil, nil
}

func (t *leaderTree) Release(time.Time) {}

func (t *leaderTree) Close() {}

// Attach leaves cmd.Cancel as it is, which kills the process at once, and returns 0: this package has no way to request
// the end of a process on these systems.
func Attach(cmd *exec.Cmd, kind Kind, _ Signal, _ time.Duration) (time.Duration, error) {
	if kind != Auto && kind != Leader {
		return 0, unavailable(kind, unsupported("not with Attach"))
	}
	return 0, nil
}
