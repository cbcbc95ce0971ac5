package proctree

import (
	"context"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// A linuxTree is the group of the leader and, depending on the containment, the means to find the processes
// outside the group.
type linuxTree struct {
	*leader
	kind    Kind
	begun   time.Time     // Group, Descendants: no later than the start of the leader
	cgroup  *cgroup.Group // Cgroup
	others  *descendants  // Descendants, Helper
	helper  *helper       // Helper; it is the leader, as far as the system is concerned
	freed   bool          // Release was called: Close must not kill what is left in the cgroup
	removed bool          // the cgroup has been removed
	account procfs.Account
}

// patience returns a Patience for a look at this tree. Reads that it gives up count for the tree.
func (t *linuxTree) patience(d time.Duration) *procfs.Patience {
	return procfs.NewPatience(d).On(&t.account)
}

func (t *linuxTree) Unanswered() int { return t.account.Late() }

func (t *linuxTree) Contained() Kind {
	if t.kind == Descendants && t.others.blind {
		return Group
	}
	return t.kind
}

// Wait implements Tree.Wait. With a helper, the end of the command is what the helper reports.
func (t *linuxTree) Wait(ctx context.Context, deadline time.Time) bool {
	if t.helper != nil {
		return t.helper.wait(ctx, deadline)
	}
	return t.leader.wait(ctx, deadline)
}

func (t *linuxTree) Signal(sig unix.Signal) error {
	err := t.signalEach(sig)
	if err == unix.EINVAL && t.lost() {
		err = unix.ESRCH
	}
	return signalError(err)
}

func (t *linuxTree) Ask(sig unix.Signal) bool {
	// Stopped members act on the request only once they are continued, and a helper that
	// is stopped does not see them end.
	_ = t.signalEach(sig, unix.SIGCONT)
	if t.helper != nil {
		_ = t.signalGroup(unix.SIGCONT)
	}
	return true
}

// signalEach signals the group and, one by one, the members outside it. No process gets a signal twice: some programs
// take a second request to end for a more urgent one.
func (t *linuxTree) signalEach(sigs ...unix.Signal) (err error) {
	if t.kind == Descendants {
		t.others.note()
	}
	if t.helper == nil { // a helper is alone in its group
		for _, sig := range sigs {
			err = t.signalGroup(sig)
		}
	}
	if t.cgroup != nil {
		t.cgroup.Signal(t.pid, sigs...)
	}
	if t.others != nil {
		if any := t.others.signal(sigs...); !any && t.helper != nil {
			err = unix.ESRCH
		}
	}
	return err
}

func (t *linuxTree) Alive() bool {
	switch {
	case t.cgroup != nil:
		return t.cgroup.Populated()
	case t.others != nil:
		found, _, ok := t.others.members()
		return len(found) > 0 || !ok
	}
	found, ok := t.groupMembers()
	return len(found) > 0 || !ok && procfs.Works()
}

// groupMembers lists the processes alive in the group. ok is false if /proc cannot be read, for example for lack of
// descriptors, or if a process is not shown in time.
func (t *linuxTree) groupMembers() (alive []int, ok bool) {
	all, complete := tableNow()
	for _, p := range all {
		if p.Group == t.pid && !p.Dead() {
			alive = append(alive, p.PID)
		}
	}
	return alive, len(all) > 0 && complete
}

func (t *linuxTree) Kill(deadline time.Time) (survivors, unidentified []int) {
	var left []int
	if t.helper != nil {
		left = t.helper.killTree(t.leader, deadline)
		if !t.leader.wait(context.Background(), longAgo) {
			// The helper is slow, as on a busy machine, or cannot end. Its processes must be killed before it is: if
			// this process ended in between, nothing would be left to kill them.
			t.others.sweep(time.Now().Add(time.Until(deadline) / 2))
			if t.others.blind { // then the helper is the only one that can still kill them, and it will
				return append(left, t.pid), nil
			}
		}
	}
	if t.kind == Descendants && time.Since(t.others.begun) > shortLived { // else see quickly
		t.others.note()
	}
	// This must precede the reaping of the leader: until then the id of the group cannot be another's.
	_ = t.signalGroup(unix.SIGKILL)
	ended := t.leader.wait(context.Background(), longAgo)
	if !ended && t.cgroup != nil {
		t.cgroup.Kill() // Remove does so, too, but only after the wait for the leader
	}
	if t.kind == Descendants && !t.leader.wait(context.Background(), time.Now().Add(promptly)) {
		// The leader is slow to die, in the kernel. That must not save the members outside its group. The sweep leaves
		// the leader out, or it would look for it until the deadline.
		t.others.except = t.pid
		t.others.sweep(deadline)
		t.others.except = 0
	}
	ended = ended || t.leader.wait(context.Background(), deadline)

	switch {
	case t.cgroup != nil:
		if t.removed = t.cgroup.Remove(deadline); !t.removed {
			survivors = t.cgroup.PIDs()
		}
	case t.others != nil:
		survivors, unidentified = t.others.sweep(deadline)
		for _, pid := range left {
			if !slices.Contains(survivors, pid) {
				survivors = append(survivors, pid)
			}
		}
		unidentified = slices.DeleteFunc(unidentified, func(pid int) bool { return slices.Contains(survivors, pid) })
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
	if t.cgroup != nil {
		t.cgroup.ReapAdopted(deadline)
	}
	return survivors, unidentified
}

// promptly is how long a killed process takes to die, as a rule, on a busy machine too. Until then a sweep would only
// have to look again.
const promptly = 20 * time.Millisecond

// awaitGroup waits until the killed group is gone. It reads /proc only while there is a process in the group.
func (t *linuxTree) awaitGroup(deadline time.Time) (survivors []int) {
	for b := patient.Backoff(0); ; {
		if t.reaped && t.signalGroup(unix.SIGKILL) == unix.ESRCH {
			return nil
		}
		survivors, ok := t.groupMembers()
		known := ok || !t.canAskGroup()
		if (len(survivors) == 0 && known) || !b.Sleep(deadline) {
			return survivors
		}
	}
}

func (t *linuxTree) Release(deadline time.Time) {
	if t.helper != nil {
		t.helper.letGo(t.leader, deadline)
	}
	if t.cgroup != nil {
		t.freed, t.removed = true, t.cgroup.Release(deadline)
	}
	if t.leader.wait(context.Background(), longAgo) {
		t.reap()
	}
}

// Total implements Tree.Total. Without a control group nothing counts what all processes have used.
func (t *linuxTree) Total() Total {
	if t.cgroup == nil {
		return Total{}
	}
	return t.cgroup.Total()
}

func (t *linuxTree) State() (error, bool) { return t.err, t.reaped }

func (t *linuxTree) Close() {
	if t.reaped && (t.cgroup == nil || t.removed) {
		t.finish()
		return
	}
	go func() {
		t.leader.wait(context.Background(), time.Time{})
		t.reap()
		for t.cgroup != nil && !t.removed {
			if !t.freed {
				t.removed = t.cgroup.Remove(time.Now().Add(time.Minute))
			} else if t.removed = t.cgroup.Release(time.Now()); !t.removed {
				time.Sleep(time.Second) // it may take as long as a daemon lives
			}
		}
		t.finish()
	}()
}

func (t *linuxTree) finish() {
	t.leader.close()
	if t.cgroup != nil {
		t.cgroup.Close()
	}
	if t.helper != nil {
		t.helper.close()
	}
}
