//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package procgroup

import (
	"context"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// A groupTree is the process group of the leader. What has left it is not known here.
type groupTree struct {
	cmd    *exec.Cmd
	pid    int
	gone   chan struct{} // closed when the leader has ended
	reaped bool
	err    error
}

func startTree(cmd *exec.Cmd, want Containment, _ bool) (tree, error) {
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

func (t *groupTree) contained() Containment { return Group }

func (t *groupTree) wait(ctx context.Context, deadline time.Time) bool {
	return waitFor(ctx, t.gone, deadline)
}

func (t *groupTree) ask() bool {
	_ = unix.Kill(-t.pid, unix.SIGTERM)
	_ = unix.Kill(-t.pid, unix.SIGCONT)
	return true
}

// alive knows that a group of zombies answers EPERM, or ESRCH.
func (t *groupTree) alive() bool { return unix.Kill(-t.pid, 0) == nil }

func (t *groupTree) kill(deadline time.Time) (survivors []int) {
	_ = unix.Kill(-t.pid, unix.SIGKILL)
	ended := t.wait(context.Background(), deadline)
	// The leader is a zombie until here, so the group's id is nobody else's.
	for b := backoff(0); t.alive(); {
		if !b.sleep(deadline) {
			survivors = groupMembers(t.pid)
			break
		}
	}
	if ended {
		t.reap()
	} else if len(survivors) == 0 {
		survivors = []int{t.pid}
	}
	return survivors
}

func (t *groupTree) release() { t.reap() }

func (t *groupTree) reap() {
	if !t.reaped {
		t.err = t.cmd.Wait()
		t.reaped = true
	}
}

func (t *groupTree) state() (error, bool) { return t.err, t.reaped }

func (t *groupTree) close() {
	if t.reaped {
		return
	}
	go func() {
		<-t.gone
		t.reap()
	}()
}
