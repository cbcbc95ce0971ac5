package procgroup

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A linuxTree is the group of the leader and, depending on the containment, what else
// holds the tree together.
type linuxTree struct {
	*leader
	kind    Containment
	cgroup  *cgroup      // Cgroup
	others  *descendants // Descendants
	removed bool         // the cgroup
}

func startTree(cmd *exec.Cmd, want Containment, orphans bool) (tree, error) {
	if err := ownGroup(cmd); err != nil {
		return nil, err
	}
	switch want {
	case Auto:
		if t, err := startInCgroup(cmd); t != nil || err != nil {
			return t, err
		}
		if procWorks() {
			return startWithCookie(cmd)
		}
		return startInGroup(cmd)
	case Group:
		return startInGroup(cmd)
	case Descendants:
		if !procWorks() {
			return nil, unavailable(want, unsupported("/proc does not show the processes of this process id namespace"))
		}
		return startWithCookie(cmd)
	case Cgroup:
		c, err := newCgroup()
		if err != nil {
			return nil, unavailable(want, errors.Join(unsupported("no control group can be made"), err))
		}
		return startIn(cmd, c)
	case Helper:
		return startWithHelper(cmd)
	}
	return nil, unavailable(want, unsupported("not on Linux"))
}

// ownGroup extends the attributes of cmd, in a copy.
func ownGroup(cmd *exec.Cmd) error {
	var attr syscall.SysProcAttr
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	if attr.Pgid != 0 {
		return errors.New("procgroup: SysProcAttr.Pgid is set, but the command needs a process group of its own")
	}
	if attr.Ptrace {
		return errors.New("procgroup: SysProcAttr.Ptrace is set, but a traced command has to be waited for by its tracer")
	}
	if !attr.Setsid { // that is a group too, and who leads one cannot make another
		attr.Setpgid = true
	}
	cmd.SysProcAttr = &attr
	return nil
}

func startInGroup(cmd *exec.Cmd) (tree, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &linuxTree{leader: newLeader(cmd), kind: Group}, nil
}

func startWithCookie(cmd *exec.Cmd) (tree, error) {
	cookie := setCookie(cmd)
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := newLeader(cmd)
	return &linuxTree{leader: l, kind: Descendants, others: &descendants{l, cookie, begun}}, nil
}

// startInCgroup gives neither a tree nor an error where there are no cgroups to be had.
func startInCgroup(cmd *exec.Cmd) (tree, error) {
	if cmd.SysProcAttr.UseCgroupFD {
		return nil, nil // the caller has a better one
	}
	c, err := newCgroup()
	if err != nil {
		return nil, nil
	}
	return startIn(cmd, c)
}

func startIn(cmd *exec.Cmd, c *cgroup) (tree, error) {
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, c.fd
	if err := cmd.Start(); err != nil {
		// Is it the command, or can no process be started in c any more? Then the next
		// command will do without; this one cannot be started twice.
		if broken := c.probe(); broken != nil {
			c.forget(broken)
		}
		c.discard()
		return nil, err
	}
	return &linuxTree{leader: newLeader(cmd), kind: Cgroup, cgroup: c}, nil
}

func (t *linuxTree) contained() Containment { return t.kind }

func (t *linuxTree) ask() bool {
	// Stopped members act on the request only once they are continued.
	_ = t.signalGroup(unix.SIGTERM)
	_ = t.signalGroup(unix.SIGCONT)
	switch {
	case t.cgroup != nil:
		t.cgroup.signal(unix.SIGTERM, unix.SIGCONT)
	case t.others != nil:
		found, _ := t.others.members()
		for i := range found {
			if found[i].pgrp != t.pid {
				signalProc(&found[i], unix.SIGTERM)
				signalProc(&found[i], unix.SIGCONT)
			}
		}
	}
	return true
}

func (t *linuxTree) alive() bool {
	switch {
	case t.cgroup != nil:
		return t.cgroup.populated()
	case t.others != nil:
		found, _ := t.others.members()
		return len(found) > 0
	}
	return len(t.groupMembers()) > 0
}

// groupMembers lists what is alive in the group.
func (t *linuxTree) groupMembers() (alive []int) {
	for _, p := range scan() {
		if p.pgrp == t.pid && !p.dead() {
			alive = append(alive, p.pid)
		}
	}
	return alive
}

func (t *linuxTree) kill(deadline time.Time) (survivors []int) {
	// First of all, while the leader's id is still its own.
	_ = t.signalGroup(unix.SIGKILL)
	ended := t.wait(context.Background(), longAgo)
	if !ended && t.cgroup != nil {
		_ = t.cgroup.write("cgroup.kill", "1")
	}
	ended = ended || t.wait(context.Background(), deadline)

	switch {
	case t.cgroup != nil:
		if t.removed = t.cgroup.remove(deadline); !t.removed {
			survivors = t.cgroup.pids()
		}
	case t.others != nil:
		survivors = t.others.sweep(deadline)
	}
	// The leader's descriptor can tell whether the group is empty, at no cost, but only
	// once the leader is reaped. Where the system cannot do that, the ids must stay the
	// leader's until nobody else is left.
	if ended && t.canAskGroup() {
		t.reap()
	}
	if t.kind == Group {
		survivors = t.awaitGroup(deadline)
	}
	if ended {
		t.reap()
	}
	return survivors
}

// awaitGroup waits until what was killed is gone. /proc is looked at only where there
// still is somebody in the group.
func (t *linuxTree) awaitGroup(deadline time.Time) (survivors []int) {
	for b := backoff(0); ; {
		if t.reaped && t.signalGroup(unix.SIGKILL) == unix.ESRCH {
			return nil
		}
		if survivors = t.groupMembers(); len(survivors) == 0 || !b.sleep(deadline) {
			return survivors
		}
	}
}

func (t *linuxTree) release() {
	if t.cgroup != nil {
		t.cgroup.release(time.Now().Add(killTime))
		t.removed = true
	}
	t.reap()
}

func (t *linuxTree) state() (error, bool) { return t.err, t.reaped }

func (t *linuxTree) close() {
	if t.reaped && (t.cgroup == nil || t.removed) {
		t.finish()
		return
	}
	go func() {
		t.wait(context.Background(), time.Time{})
		t.reap()
		for t.cgroup != nil && !t.removed {
			t.removed = t.cgroup.remove(time.Now().Add(time.Minute))
		}
		t.finish()
	}()
}

func (t *linuxTree) finish() {
	t.leader.close()
	if t.cgroup != nil {
		t.cgroup.close()
	}
}
