package proctree

import (
	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// Members lists the members, without the helper, for package waits. The list is empty if not all members can be read
// now. whole reports whether the list includes members that have left the process group.
func (t *linuxTree) Members() (members []procfs.Process, whole bool) {
	whole = t.cgroup != nil || t.others != nil
	var all []proc
	var complete bool
	if t.cgroup != nil {
		var pids []int
		listed := t.cgroup.Each(func(pid int) { pids = append(pids, pid) })
		all, complete = statuses(t.patience(fullPatience), pids, always)
		complete = complete && listed
	} else {
		all, complete = t.look()
		all = t.membersOf(all)
	}
	if !complete {
		return nil, whole
	}
	for _, p := range all {
		if t.cgroup != nil || t.helper == nil || p.PID != t.pid {
			members = append(members, p.Process)
		}
	}
	return members, whole
}

// Patience returns the Patience for one look of package waits.
func (t *linuxTree) Patience() *procfs.Patience { return t.patience(viewPatience) }

// HasTerminal reports whether the command of t may have the controlling terminal of this process: Start has started it,
// and not in a session of its own.
func HasTerminal(t Tree) bool {
	l, started := t.(*linuxTree)
	switch {
	case !started:
		return false
	case l.helper != nil:
		return !l.helper.session
	}
	return !l.cmd.SysProcAttr.Setsid
}

// A metered is a work.Tree: it lists the processes of a linuxTree.
type metered struct{ tree *linuxTree }

func (t *linuxTree) Meter(io bool) work.Meter { return work.MeterOf(metered{t}, io) }

func (m metered) Group() *cgroup.Group { return m.tree.cgroup }

func (m metered) Patience() *procfs.Patience { return m.tree.patience(fullPatience) }

func (m metered) Helper() int {
	if m.tree.helper == nil {
		return 0
	}
	return m.tree.pid
}

func (m metered) Members(known func(procfs.Key) bool) (members []procfs.Process, late, hidden []procfs.Key, complete bool) {
	all, complete := m.tree.look()
	for i := range all {
		p := &all[i]
		switch key := p.Key(); {
		case !p.late && !p.Exiting && !p.blank && !p.hidden, !known(key):
		case p.late, p.Exiting:
			late = append(late, key)
		default:
			hidden = append(hidden, key)
		}
	}
	for _, p := range m.tree.membersOf(all) {
		members = append(members, p.Process)
	}
	return members, late, hidden, complete
}

// look lists all processes of the system, with their cookies if the members are found by them. Meters that look at the
// same time share one list. complete is false if the list lacks processes.
func (t *linuxTree) look() (all []proc, complete bool) {
	if t.byCookie() {
		all = recall()
		return all, all != nil
	}
	return workTable()
}

// byCookie reports whether the tree finds members also by the cookie in their environments.
func (t *linuxTree) byCookie() bool { return t.others != nil && t.others.cookie != "" }

// membersOf returns the processes in all that are members, zombies and the helper included. The tree must have no
// control group.
func (t *linuxTree) membersOf(all []proc) (members []proc) {
	byID := !t.lost()
	var known map[int]bool
	if t.others != nil {
		known, _ = t.others.known(all, byID)
	}
	for _, p := range all {
		if known[p.PID] || (byID && t.others == nil && p.Group == t.pid) {
			members = append(members, p)
		}
	}
	return members
}
