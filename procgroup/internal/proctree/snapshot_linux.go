package proctree

import (
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Snapshot implements Tree.Snapshot. It does not use scan, which has no bound on the number of processes and more
// patience: after a limit has fired, the signal has to wait for the snapshot.
func (t *linuxTree) Snapshot(until time.Time) (all []Process, more bool) {
	b, patience := &budget{until: until}, t.patience(viewPatience)
	members, complete := t.view(patience, b)
	more = !complete
	if len(members) > maxListed {
		members, more = members[:maxListed], true
	}
	all, described := procfs.Gather(patience, len(members), func(r *procfs.Reader, i int) Process { return describe(r, &members[i].Process, true) })
	var late []int
	for i := range all {
		if !described[i] {
			late = append(late, i)
		}
	}
	// A process whose reads were late is described once more, without the reads that may block, to show its name.
	again, named := procfs.Gather(t.patience(quickPatience), len(late), func(r *procfs.Reader, i int) Process {
		return describe(r, &members[late[i]].Process, false)
	})
	for n, i := range late {
		if all[i] = again[n]; !named[n] {
			all[i] = unnamed(&members[i].Process)
		}
	}
	return slices.DeleteFunc(all, func(d Process) bool { return d.Pid == 0 }), more
}

// view returns the members, without the helper. complete is false if there may be others, except that zombies of a
// control group may be missing in any case.
func (t *linuxTree) view(patience *procfs.Patience, b *budget) (members []proc, complete bool) {
	if t.cgroup != nil {
		members, complete = statuses(patience, t.cgroup.PIDs(), b.next)
		members = append(members, zombies(patience, members, b)...)
	} else {
		members, complete = t.find(patience, b)
	}
	if t.helper != nil {
		members = slices.DeleteFunc(members, func(p proc) bool { return p.PID == t.pid })
	}
	return members, complete
}

// find returns the members of a tree without a control group. It reads the processes with ids above the leader's, and
// then the others if the ids have wrapped around since the start. complete is false if there may be other members.
func (t *linuxTree) find(patience *procfs.Patience, b *budget) (members []proc, complete bool) {
	leader := procfs.StatusOf(t.pid)
	if !leader.There {
		return nil, false
	}
	var above, below []int
	wrapped := lastPID() < t.pid
	listed := pidsNow()
	for _, pid := range listed {
		switch {
		case pid >= t.pid:
			above = append(above, pid)
		case wrapped:
			below = append(below, pid)
		}
	}
	slices.Sort(above)
	pids := append(above, below...)
	var all []proc
	if t.byCookie() {
		all, complete, _ = environs(patience, pids, leader.Start, b.next)
	} else {
		all, complete = statuses(patience, pids, b.next)
	}
	return t.membersOf(all), complete && len(listed) > 0
}

// zombies returns the children of members that have ended, which a control group does not list, as far as patience and
// b allow. It looks only for the children of main threads, which is enough for a snapshot.
func zombies(patience *procfs.Patience, members []proc, b *budget) (all []proc) {
	found, _ := procfs.Gather(patience, len(members), func(r *procfs.Reader, i int) (all []proc) {
		for _, pid := range r.Children(members[i].PID) {
			if slices.ContainsFunc(members, func(p proc) bool { return p.PID == pid }) {
				continue
			}
			if p, ok := r.Process(pid); ok && p.Dead() && b.next() {
				all = append(all, proc{Process: p})
			}
		}
		return all
	})
	return slices.Concat(found...)
}

var states = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "uninterruptible", 'T': "stopped", 't': "traced",
	'Z': "zombie", 'X': "dead", 'x': "dead", 'I': "idle", 'P': "parked",
}

// unnamed returns the description of a process from its status alone, with "[?]" in place of its arguments.
func unnamed(p *procfs.Process) Process {
	return Process{Pid: p.PID, Parent: p.Parent, State: states[p.State], CPU: p.CPUTime(), Age: p.Age(), Args: []string{"[?]"}}
}

// describe returns a description of p, or the zero Process if p has ended. If wait is set, it also makes the reads that
// may block, those of the arguments and of the kernel stack.
func describe(r *procfs.Reader, p *procfs.Process, wait bool) Process {
	d := unnamed(p)
	d.Args = nil
	if wait {
		d.Args = splitArgs(r.Args(p))
	}
	if d.Args == nil { // a zombie, or the arguments were not read
		name := r.Name(p.PID)
		if name == "" && !r.Short && !r.Late {
			return Process{}
		}
		d.Args = []string{"[" + name + "]"}
	}
	if p.State != 'R' && !p.Dead() {
		if d.Wait = r.Wait(p.PID); d.Wait == "" && wait {
			d.Wait = r.Stack(p)
		}
	}
	return d
}
