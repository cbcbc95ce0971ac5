package proctree

import (
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// othersTries bounds the looks of Others, which looks again while it finds no process but there may be one. On a busy
// machine a member may not show its environment in time, and a member that is then killed should be reported.
const othersTries = 4

// Others implements Tree.Others. Usually no other process is left, and it finds that out without a Snapshot.
func (t *linuxTree) Others(until time.Time) (all []Process, more bool) {
	if !t.mayHaveOthers(until) {
		return nil, false
	}
	for range othersTries {
		all, more = t.Snapshot(until)
		all = slices.DeleteFunc(all, func(p Process) bool { return p.Pid == t.pid || p.State == "zombie" || p.State == "dead" })
		if len(all) > 0 || !more {
			return all, more
		}
		until = time.Now().Add(viewPatience)
	}
	return nil, false
}

// mayHaveOthers reports whether any process other than the leader, which has ended, may be alive.
func (t *linuxTree) mayHaveOthers(until time.Time) bool {
	switch {
	case t.cgroup != nil:
		return t.cgroup.Populated()
	case t.helper != nil:
		return !t.helper.alone
	case time.Since(t.begun) > shortLived: // too old for quickly
		return true
	case t.others != nil:
		t.others.noMembers = t.others.quickly(until, false)
		return !t.others.noMembers
	}
	found, complete := newcomers(t.pid, until, func(pids []int) ([]proc, bool) {
		all, ok := statuses(procfs.NewPatience(quickPatience), pids, always)
		return slices.DeleteFunc(all, func(p proc) bool { return p.Group != t.pid || p.Dead() }), ok
	})
	return !complete || len(found) > 0
}
