package proctree

import (
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// Snapshot finds the members anew. It does not use scan, which looks at all processes: a snapshot stands between a
// limit and the signal.
func (t *linuxTree) Snapshot(until time.Time) (all []Process, more bool) {
	b, patience := &budget{until: until}, procfs.NewPatience(viewPatience)
	var r procfs.Reader
	members, complete := t.view(&r, patience, b)
	more = !complete
	if len(members) > maxListed {
		members, more = members[:maxListed], true
	}
	all, described := procfs.Gather(patience, len(members), func(r *procfs.Reader, i int) Process { return describe(r, &members[i].Process, true) })
	for i := range all {
		if !described[i] {
			all[i] = describe(&r, &members[i].Process, false)
		}
	}
	return slices.DeleteFunc(all, func(d Process) bool { return d.Pid == 0 }), more
}

// view returns the members, without the helper.
func (t *linuxTree) view(r *procfs.Reader, patience *procfs.Patience, b *budget) (members []proc, complete bool) {
	if t.cgroup != nil {
		members, complete = statuses(r, t.cgroup.pids(), b.next)
		members = append(members, zombies(r, members, b)...)
	} else {
		members, complete = t.find(r, patience, b)
	}
	if t.helper != nil {
		members = slices.DeleteFunc(members, func(p proc) bool { return p.PID == t.pid })
	}
	return members, complete
}

// find returns the members of a tree without a control group. They have ids above that of the leader, unless the ids
// have begun anew since.
func (t *linuxTree) find(r *procfs.Reader, patience *procfs.Patience, b *budget) (members []proc, complete bool) {
	leader, ok := r.Process(t.pid)
	if !ok {
		return nil, false
	}
	var above, below []int
	anew := procfs.LastPID() < t.pid
	listed := procfs.PIDs()
	for _, pid := range listed {
		switch {
		case pid >= t.pid:
			above = append(above, pid)
		case anew:
			below = append(below, pid)
		}
	}
	slices.Sort(above)
	pids := append(above, below...)
	var all []proc
	if t.byCookie() {
		all, complete, _ = environs(patience, pids, leader.Start, b.next)
	} else {
		all, complete = statuses(r, pids, b.next)
	}
	return t.list(all), complete && len(listed) > 0
}

// zombies returns the children of members that have ended: a control group does not list them. Only the children of
// main threads are looked for, which is enough for a picture.
func zombies(r *procfs.Reader, members []proc, b *budget) (all []proc) {
	for i := range members {
		for _, pid := range r.Children(members[i].PID) {
			if slices.ContainsFunc(members, func(p proc) bool { return p.PID == pid }) {
				continue
			}
			if p, ok := r.Process(pid); ok && p.Dead() && b.next() {
				all = append(all, proc{Process: p})
			}
		}
	}
	return all
}

var states = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "uninterruptible", 'T': "stopped", 't': "traced",
	'Z': "zombie", 'X': "dead", 'x': "dead", 'I': "idle", 'P': "parked",
}

// describe reads what else there is to know about a process, and returns the zero Process if that has ended meanwhile.
// Call it under procfs.Gather if it may wait for the process.
func describe(r *procfs.Reader, p *procfs.Process, wait bool) Process {
	d := Process{Pid: p.PID, Parent: p.Parent, State: states[p.State], CPU: p.CPUTime(), Age: p.Age()}
	if wait {
		d.Args = splitArgs(r.Args(p))
	}
	if d.Args == nil { // a zombie, or they do not come
		name := r.Name(p.PID)
		if name == "" && !r.Short {
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
