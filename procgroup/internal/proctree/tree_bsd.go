//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import (
	"context"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
)

// A groupTree is a Tree of the leader's process group. It does not find the processes that have left the group.
type groupTree struct {
	blind
	cmd    *exec.Cmd
	pid    int
	gone   chan struct{} // closed when the leader has ended
	reaped bool
	err    error
}

func Start(_ context.Context, cmd *exec.Cmd, want Kind) (Tree, error) {
	if want != Auto && want != Group {
		return nil, unavailable(want, unsupported("not on this system"))
	}
	if err := ownGroup(cmd); err != nil {
		return nil, err
	}
	kq, err := newExitQueue()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		unix.Close(kq)
		return nil, err
	}
	t := &groupTree{cmd: cmd, pid: cmd.Process.Pid, gone: make(chan struct{})}
	go func() {
		defer close(t.gone)
		defer unix.Close(kq)
		waitUnreaped(kq, t.pid)
	}()
	return t, nil
}

func (t *groupTree) Contained() Kind { return Group }

func (t *groupTree) Wait(ctx context.Context, deadline time.Time) bool {
	return waitFor(ctx, t.gone, deadline)
}

func (t *groupTree) Signal(sig unix.Signal) error {
	err := unix.Kill(-t.pid, sig)
	select {
	case <-t.gone: // systems differ in their error for a group with only a zombie in it
		if err != nil {
			err = unix.ESRCH
		}
	default:
	}
	return signalError(err)
}

func (t *groupTree) Ask(sig unix.Signal) bool {
	_ = unix.Kill(-t.pid, sig)
	_ = unix.Kill(-t.pid, unix.SIGCONT)
	return true
}

// Alive implements Tree.Alive. It returns false on systems that cannot list the group, because there the leader, a
// zombie by now, counts as a member. So the grace ends with the leader.
func (t *groupTree) Alive() bool { return canListGroup && len(groupMembers(t.pid)) > 0 }

func (t *groupTree) Kill(deadline time.Time) (survivors, _ []int) {
	_ = unix.Kill(-t.pid, unix.SIGKILL)
	if !t.Wait(context.Background(), deadline) {
		if survivors = groupMembers(t.pid); len(survivors) == 0 {
			survivors = []int{t.pid}
		}
		return survivors, nil
	}
	// The first signal may have missed processes that were being forked. The group's id cannot have been reused, because
	// the leader is still a zombie; once the leader is reaped, nothing is signalled.
	_ = unix.Kill(-t.pid, unix.SIGKILL)
	if !canListGroup {
		t.reap()
	}
	for b := patient.Backoff(0); ; {
		if survivors = groupMembers(t.pid); len(survivors) == 0 || !b.Sleep(deadline) {
			break
		}
	}
	t.reap()
	return survivors, nil
}

func (t *groupTree) Release(time.Time) { t.reap() }

func (t *groupTree) reap() {
	if !t.reaped {
		t.err = t.cmd.Wait()
		t.reaped = true
	}
}

func (t *groupTree) State() (error, bool) { return t.err, t.reaped }

func (t *groupTree) Close() {
	if t.reaped {
		return
	}
	go func() {
		<-t.gone
		t.reap()
	}()
}
