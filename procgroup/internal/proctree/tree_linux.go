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

// A linuxTree is the Tree of Linux. Besides the leader, it holds what finds the processes outside the leader's
// process group, which depends on the containment.
type linuxTree struct {
	*leader // with a helper: the helper process
	kind    Kind
	begun   time.Time     // shortly before the start of the leader; set for Group and Descendants
	cgroup  *cgroup.Group // set for Cgroup
	others  *descendants  // set for Descendants, Helper and HelperTree
	helper  *helper       // set for Helper and HelperTree
	freed   bool          // Release was called: Close must not kill what is left in the cgroup
	removed bool          // the cgroup has been removed
	account procfs.Account
}

// patience returns a Patience of d for one look at this tree. Unanswered counts the reads that the look abandons.
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

// Wait implements Tree.Wait. With a helper, it waits until the helper reports the end of the command, or ends.
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
	// A stopped process handles the signal only once it is continued, and a stopped helper does not notice the end of
	// the command.
	_ = t.signalEach(sig, unix.SIGCONT)
	if t.helper != nil {
		_ = t.signalGroup(unix.SIGCONT)
	}
	return true
}

// signalEach sends sigs to the leader's process group and, one by one, to the members outside it. No process receives
// the same signal twice: some programs end at once on the second. signalEach returns the error of the last signal to
// the group; with a helper, it returns ESRCH if no member is found.
func (t *linuxTree) signalEach(sigs ...unix.Signal) (err error) {
	if t.kind == Descendants {
		t.others.note()
	}
	if t.helper == nil { // the group of a helper has no other process
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

// groupMembers lists the living processes of the leader's process group. ok is false if the list may be incomplete:
// /proc cannot be read, for example for lack of descriptors, or does not show a process in time.
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
			// The helper has not ended: the machine is busy, or the helper cannot end. The members must be killed before
			// the helper: if this process died in between, nothing would be left to kill them.
			t.others.sweep(time.Now().Add(time.Until(deadline) / 2))
			if t.others.blind { // this process cannot find the members, so the helper must live on to kill them
				return append(left, t.pid), nil
			}
		}
	}
	if t.kind == Descendants && time.Since(t.others.begun) > shortLived { // before, quickly needs no notes
		t.others.note()
	}
	// The group is signalled before the leader is reaped: until then, no other group can have its id.
	_ = t.signalGroup(unix.SIGKILL)
	ended := t.leader.wait(context.Background(), longAgo)
	if !ended && t.cgroup != nil {
		t.cgroup.Kill() // Remove kills too, but follows the wait for the leader
	}
	if t.kind == Descendants && !t.leader.wait(context.Background(), time.Now().Add(promptly)) {
		// The leader is still exiting. Meanwhile the sweep kills the members outside the leader's group. A sweep lasts as
		// long as it finds a living member, so this one leaves the leader out.
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
	// Where the leader's descriptor can signal the group, awaitGroup learns from it at no cost that the group is empty,
	// but only once the leader is reaped. Elsewhere the leader must be reaped last: its zombie keeps the group's id from
	// being reused.
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

// promptly is the time in which a killed process usually exits, on a busy machine too. Kill waits this long before it
// sweeps, because an earlier sweep would have to look again.
const promptly = 20 * time.Millisecond

// awaitGroup waits until the killed process group is gone, or the deadline has passed, and returns the members that it
// has last seen alive. If /proc cannot be read, others may be alive. It reads /proc only while it cannot rule out that
// the group has a member.
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

// Total implements Tree.Total. Without a control group it returns the zero Total.
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
				time.Sleep(time.Second) // a daemon in the cgroup may live for any time
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
