package proctree

import (
	"os/exec"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/work"
)

// Members lists the members, without the helper, for package waits. It lists none if not all can be read now. whole
// reports whether members that have left the process group are listed, too.
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

// Patience returns the bound of one look of package waits.
func (t *linuxTree) Patience() *procfs.Patience { return t.patience(viewPatience) }

// HasTerminal reports whether a command that was started may have the terminal of this process.
func HasTerminal(cmd *exec.Cmd) bool { return !cmd.SysProcAttr.Setsid }

// A metered is a tree as package work looks at it.
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

// look lists all processes, with what it takes to find the members among them. Looks of all meters at the same
// time share one list.
func (t *linuxTree) look() (all []proc, complete bool) {
	if t.byCookie() {
		all = recall()
		return all, all != nil
	}
	return workTable()
}

// byCookie reports whether members are found by their environments, too.
func (t *linuxTree) byCookie() bool { return t.others != nil && t.others.cookie != "" }

// membersOf returns the members among all, zombies and the helper included, of a tree without a control group.
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
