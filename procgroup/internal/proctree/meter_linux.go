package proctree

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// CanMeter returns the reason why the work of a tree cannot be measured here, if there is one.
func CanMeter(io bool) error {
	if !procfs.Works() {
		return unsupported("/proc does not show the processes of this process id namespace")
	}
	if _, err := os.ReadFile("/proc/self/io"); io && err != nil {
		return fmt.Errorf("%w: %w", unsupported("this kernel does not count bytes by process"), err)
	}
	return nil
}

// A meter measures one kind of work of a linuxTree. It has what the tree had used at the last look.
//
// The control group counts the processor time of all processes that are or were in it. It counts bytes only if
// its parent has enabled that, which is rare: so bytes come from the members, and in addition from a group that
// counts them. Without a group everything comes from the members.
type meter struct {
	tree    *linuxTree
	io      bool // measure bytes, not processor time
	reader  procfs.Reader
	members map[procfs.Key]spent
	looked  time.Time           // when
	cpu     time.Duration       // of the control group
	starved time.Duration       // too
	bytes   uint64              // of the control group
	sockets map[uint64]uint64   // bytes of the members' connections, by inode
	doubted map[procfs.Key]bool // members that showed no environment at the last look
}

// Meter is Tree.Meter. What a process has used that has ended is counted by its parent, once that has waited for
// it, or by the control group. Without a group, what a process that is not waited for has used between the last look
// and its end is missed.
func (t *linuxTree) Meter(io bool) Meter { return (&meter{tree: t, io: io, looked: time.Now()}).look }

func (m *meter) look() (used Usage, ok bool) {
	c := m.tree.cgroup
	switch {
	case c == nil:
		used, ok = m.byMembers()
	case m.io:
		used, ok = m.bytesIn(c)
	default:
		used, ok = m.timeIn(c)
	}
	if !ok {
		return used, false
	}
	now := time.Now()
	if c == nil {
		m.looked = now
	} else if starved, ok := c.starvedTime(); ok {
		used.Starved = share(starved-m.starved, now.Sub(m.looked))
		m.starved, m.looked = starved, now
	}
	return used, true
}

// byMembers adds up what the members have used. It is not ok if none is seen, or the bytes of all come late.
func (m *meter) byMembers() (used Usage, ok bool) {
	now := m.membersNow()
	if len(now) == 0 {
		return used, false
	}
	used = growth(m.members, now)
	for _, s := range now {
		used.Running = used.Running || s.running
	}
	used.Running = used.Running || m.starts(now)
	used.Starved = starved(m.members, now, m.looked)
	m.members = now
	if m.io {
		used.Net = m.transferred(now)
	}
	return used, true
}

// startTries is how often starts looks at one member: a child may have ended before its state is read.
const startTries = 4

// starts reports whether a member is starting programs now. A program that takes a millisecond is not in a list of
// members that was made before, and its parent sleeps while it runs: a tree that does nothing but start such
// programs would be asleep at most looks. So starts asks for the children now, of members that have had page
// faults since the last look; a fork takes some.
func (m *meter) starts(now map[procfs.Key]spent) bool {
	runs := func(pid int) bool {
		p, ok := m.reader.Process(pid)
		return ok && p.Running()
	}
	for key, s := range now {
		if s.faults <= m.members[key].faults {
			continue
		}
		for range startTries {
			if slices.ContainsFunc(m.reader.Children(key.PID), runs) || runs(key.PID) {
				return true
			}
		}
	}
	return false
}

// timeIn returns the processor time of the group, and the page faults of the members, as far as these are
// found: only a group with a memory controller counts page faults.
func (m *meter) timeIn(c *cgroup) (used Usage, ok bool) {
	cpu, ok := c.cpuTime()
	if !ok {
		return used, false
	}
	members, _ := m.byMembers()
	used.Faults, used.Running = members.Faults, members.Running
	used.CPU = max(cpu-m.cpu, 0)
	m.cpu = cpu
	return used, true
}

func (m *meter) bytesIn(c *cgroup) (used Usage, ok bool) {
	if used, ok = m.byMembers(); !ok && m.members != nil {
		return used, false // they were seen before
	}
	read, written, counted := c.ioBytes()
	if bytes := read + written; counted && bytes > m.bytes {
		// The two overlap: what is read from a disk is read by a process, as a rule.
		used.IO = max(used.IO, bytes-m.bytes)
		m.bytes = bytes
	}
	return used, ok || counted
}

// membersNow returns what each member has used. A member that cannot be read now has used what it had at the last
// look: if it were left out, all that it has ever used would count again at the next look.
func (m *meter) membersNow() map[procfs.Key]spent {
	members, unread := m.find()
	var now map[procfs.Key]spent
	for tries := 0; ; tries++ {
		members = m.refresh(members)
		if len(members) == 0 {
			return nil
		}
		now = make(map[procfs.Key]spent, len(members))
		for i := range members {
			now[members[i].Key()] = m.spentBy(&members[i])
		}
		if !m.io {
			break
		}
		known, gone := m.addBytes(members, now)
		if !known {
			return nil
		}
		if !gone || tries == maxTries {
			break
		}
	}
	for _, key := range unread {
		now[key] = m.members[key]
	}
	return now
}

// find returns the members, zombies included: their parents have not taken over what they have used. unread has
// the members of the last look that live and cannot be read, for want of descriptors, say.
func (m *meter) find() (members []proc, unread []procfs.Key) {
	t, found := m.tree, make(map[procfs.Key]bool)
	add := func(p proc) {
		members = append(members, p)
		found[p.Key()] = true
	}
	m.reader.Short = false
	var complete bool
	unsure, doubted := make(map[procfs.Key]bool), make(map[procfs.Key]bool) // processes that show no environment
	if t.cgroup != nil {
		complete = t.cgroup.each(func(pid int) {
			if p, ok := m.reader.Process(pid); ok {
				add(proc{Process: p})
			}
		})
	} else {
		var all []proc
		all, complete = t.look()
		for i := range all {
			p, key := &all[i], all[i].Key()
			if _, before := m.members[key]; !before {
				continue
			}
			switch {
			case p.late, p.Exiting:
				unsure[key] = true
			case p.blank, p.hidden: // during an exec, or for good: then it is none, as for the kill
				unsure[key] = !m.doubted[key]
				doubted[key] = true
			}
		}
		for _, p := range t.list(all) {
			add(p)
		}
	}
	m.doubted = doubted
	complete = complete && !m.reader.Short
	for key := range m.members {
		if found[key] {
			continue
		}
		switch p, ok := m.reader.Process(key.PID); {
		case ok && p.Key() == key:
			// A control group does not list zombies. Any other member that a complete list lacks has left.
			if p.Dead() || unsure[key] || !complete {
				members = append(members, proc{Process: p})
			}
		case ok || unix.Kill(key.PID, 0) == unix.ESRCH:
			// It was waited for. Its parent is read after that, and has its use.
		default:
			unread = append(unread, key)
		}
	}
	return members, unread
}

// maxTries is how often the bytes of the members are read again because one of them was waited for
// meanwhile.
const maxTries = 64

// refresh reads the members again, without those that were waited for meanwhile. When a parent waits for a child, it
// takes over what the child has used, which must be counted neither twice nor never. So parents are read first:
// the figures of a child that is still there after that are not in those of its parent. If a child is gone, its
// figures may be in its parent's or not, and all are read anew.
func (m *meter) refresh(members []proc) []proc {
	members = parentsFirst(members)
	for gone := true; gone; {
		gone = false
		for i := 0; i < len(members); i++ {
			if p, ok := m.reader.Process(members[i].PID); ok && p.Key() == members[i].Key() {
				members[i].Process = p
			} else if ok || unix.Kill(members[i].PID, 0) == unix.ESRCH {
				members, gone = slices.Delete(members, i, i+1), true
				i--
			}
		}
	}
	return members
}

// parentsFirst returns processes with each one after its parent.
func parentsFirst(all []proc) []proc {
	byID := make(map[int]*proc, len(all))
	for i := range all {
		byID[all[i].PID] = &all[i]
	}
	depth := make(map[int]int, len(all))
	for i := range all {
		n := 0
		for p := byID[all[i].Parent]; p != nil && n < len(all); p = byID[p.Parent] {
			n++
		}
		depth[all[i].PID] = n
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b proc) int { return depth[a.PID] - depth[b.PID] })
	return sorted
}

// look lists all processes, with what it takes to find the members among them. Looks of all meters at the same
// time share one list.
func (t *linuxTree) look() (all []proc, complete bool) {
	if t.byCookie() {
		all = recall()
		return all, all != nil
	}
	return listAll()
}

// byCookie reports whether members are found by their environments, too.
func (t *linuxTree) byCookie() bool { return t.others != nil && t.others.cookie != "" }

// list returns the members among all, zombies and the helper included, of a tree without a control group.
func (t *linuxTree) list(all []proc) (members []proc) {
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

func (m *meter) spentBy(p *proc) spent {
	s := spent{parent: p.Parent, at: time.Now(), faults: p.Faults, running: p.Running()}
	if !m.io {
		s.children = p.ChildrenCPU
	}
	if m.tree.helper == nil || p.PID != m.tree.pid { // the helper's own work is not that of the command
		if !m.io {
			s.own = p.CPUTime()
		}
		if m.tree.cgroup == nil {
			var ok bool
			if s.waited, ok = m.reader.Waited(p.PID); !ok {
				before := m.members[p.Key()]
				s.waited, s.at = before.waited, before.at
			}
		}
	}
	return s
}

// addBytes adds how many bytes each member has read and written. known is false if all reads were late, and gone
// reports whether a member was waited for meanwhile.
func (m *meter) addBytes(members []proc, now map[procfs.Key]spent) (known, gone bool) {
	type answer struct {
		n   uint64
		err error
	}
	answers, returned := procfs.Gather(procfs.NewPatience(fullPatience), len(members), func(r *procfs.Reader, i int) (a answer) {
		a.n, a.err = r.Bytes(&members[i].Process)
		return a
	})
	late := false
	for i, a := range answers {
		key := members[i].Key()
		s := now[key]
		switch {
		case returned[i] && a.err == nil:
			s.bytes, known = a.n, true
		case !returned[i] || a.err == procfs.ErrLate || procfs.IsShort(a.err):
			late = true
			fallthrough
		default: // it has ended, or may not be read
			gone = gone || procfs.Gone(a.err)
			s.bytes, s.old = m.members[key].bytes, true
		}
		now[key] = s
	}
	return known || !late, gone
}
