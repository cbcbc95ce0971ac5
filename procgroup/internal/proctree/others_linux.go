package proctree

import (
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// othersTries is how often Others looks while it sees nobody and there may be somebody: on a busy machine a process may
// not show in time whether it belongs to the tree, and what is killed next should not be killed without a word.
const othersTries = 4

// Others costs next to nothing where there are none, which is the rule.
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

// mayHaveOthers reports whether anything may be alive beside the leader, which has ended.
func (t *linuxTree) mayHaveOthers(until time.Time) bool {
	switch {
	case t.cgroup != nil:
		return t.cgroup.Populated()
	case t.helper != nil:
		return !t.helper.alone
	case time.Since(t.begun) > shortLived: // see quickly
		return true
	case t.others != nil:
		t.others.none = t.others.quickly(until, false)
		return !t.others.none
	}
	found, complete := newcomers(t.pid, until, func(pids []int) ([]proc, bool) {
		all, ok := statuses(procfs.NewPatience(quickPatience), pids, always)
		return slices.DeleteFunc(all, func(p proc) bool { return p.Group != t.pid || p.Dead() }), ok
	})
	return !complete || len(found) > 0
}
