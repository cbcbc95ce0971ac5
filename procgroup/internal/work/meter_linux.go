package work

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/cgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// CanMeter returns an error that says why the processor time or, if io is set, the bytes of a tree cannot be measured
// on this system. It returns nil if they can.
func CanMeter(io bool) error {
	if !procfs.Works() {
		return unsupported("/proc does not show the processes of this process id namespace")
	}
	if _, err := os.ReadFile("/proc/self/io"); io && err != nil {
		return fmt.Errorf("%w: %w", unsupported("this kernel does not count bytes by process"), err)
	}
	return nil
}

func unsupported(why string) error { return fmt.Errorf("%s (%w)", why, errors.ErrUnsupported) }

// A Tree lists the processes that a Meter measures.
type Tree interface {
	// Group returns the control group of the tree, or nil if it has none.
	Group() *cgroup.Group
	// Members returns the members of a tree without a control group, zombies and the helper included. late and hidden
	// have the processes for which known returns true but that may not be recognized as members: those in late are
	// exiting, or were not read in time; those in hidden show no environment. complete reports whether members was
	// selected from all processes of the system.
	Members(known func(procfs.Key) bool) (members []procfs.Process, late, hidden []procfs.Key, complete bool)
	// Helper returns the process id of the helper, whose own work is not that of the command, or 0 if there is none.
	Helper() int
	// Patience returns the Patience for one read of the bytes of all members.
	Patience() *procfs.Patience
}

// A meter measures one kind of work of a Tree. It has the figures of the last look.
//
// The control group counts the processor time of all processes that are or were in it. It counts bytes only if its
// parent has enabled the io controller, which is rare. So bytes come from the members, and in addition from a group
// that counts them. Without a group, all figures come from the members.
type meter struct {
	tree    Tree
	io      bool           // measure bytes, not processor time
	reader  *procfs.Reader // unbounded, because nobody waits for a look of a meter
	members map[procfs.Key]spent
	looked  time.Time           // time of the last look
	cpu     time.Duration       // processor time of the control group at the last look
	starved time.Duration       // StarvedTime of the control group at the last look
	bytes   uint64              // bytes of the control group at the last look
	sockets map[uint64]uint64   // bytes of the members' TCP connections at the last look, by inode
	doubted map[procfs.Key]bool // members that showed no environment at the last look
}

// MeterOf returns a Meter of the bytes or, if io is not set, of the processor time of a tree. A control group that
// counts these also counts the work of processes that have ended. Otherwise, a parent takes over the figures of a child
// when it waits for the child, and the Meter misses what a process that nobody waits for did after the last look.
func MeterOf(t Tree, io bool) Meter {
	return (&meter{tree: t, io: io, reader: procfs.Unhurried(), looked: time.Now()}).look
}

func (m *meter) look() (used Usage, ok bool) {
	c := m.tree.Group()
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
	} else if starved, ok := c.StarvedTime(); ok {
		used.Starved = share(starved-m.starved, now.Sub(m.looked))
		m.starved, m.looked = starved, now
	}
	return used, true
}

// byMembers returns what the members have used since the last look. ok is false if no member can be read, or if their
// bytes are all late.
func (m *meter) byMembers() (used Usage, ok bool) {
	now := m.membersNow()
	if len(now) == 0 {
		return used, false
	}
	used = growth(m.members, now)
	used.FaultCost = faultCost()
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

// startTries is the number of times that starts reads the children of a member: a child may end before its state is
// read.
const startTries = 4

// starts reports whether a member is starting programs at the moment. now lacks a program that began after it was read,
// and the parent sleeps while the program runs: a tree that only starts programs of a millisecond would be asleep at
// most looks. So starts reads the current children, of members that have had page faults since the last look; a fork
// causes some.
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

// timeIn returns the processor time from the group; ok is false if it cannot be read. The page faults come from the
// members, as far as these can be read, because only a group with a memory controller counts faults.
func (m *meter) timeIn(c *cgroup.Group) (used Usage, ok bool) {
	cpu, ok := c.CPUTime()
	if !ok {
		return used, false
	}
	members, _ := m.byMembers()
	used.Faults, used.FaultCost, used.Running = members.Faults, members.FaultCost, members.Running
	used.CPU = max(cpu-m.cpu, 0)
	m.cpu = cpu
	return used, true
}

// bytesIn returns the bytes of the members or of the group, whichever are more. ok is false if neither can be read, and
// if members that were read at the last look cannot be read now.
func (m *meter) bytesIn(c *cgroup.Group) (used Usage, ok bool) {
	if used, ok = m.byMembers(); !ok && m.members != nil {
		return used, false // there are members, so their bytes must not count as 0
	}
	read, written, counted := c.IOBytes()
	if bytes := read + written; counted && bytes > m.bytes {
		// The two overlap, because processes usually read and write the bytes of the disks, so they are not added.
		used.IO = max(used.IO, bytes-m.bytes)
		m.bytes = bytes
	}
	return used, ok || counted
}

// maxTries bounds the rounds of membersNow, which reads all members again if one of them was waited for meanwhile.
const maxTries = 64

// membersNow returns the figures of each member, or nil if they cannot be read now. For a member that cannot be read it
// returns those of the last look: without them, all that the member has ever used would count again at the next look.
//
// When a parent waits for a child, the figures of the child are added to the parent's; they must count exactly once.
// reread reads parents first: if a child is still there afterwards, its figures are not in those of its parent. Bytes
// are read in any order, so all members must still be there afterwards. If one is gone, its figures may or may not be
// in its parent's, and membersNow reads all members again.
func (m *meter) membersNow() map[procfs.Key]spent {
	members, unread := m.find()
	for range maxTries {
		var reaped bool
		if members, reaped = m.reread(members); reaped {
			continue
		}
		if len(members) == 0 {
			return nil
		}
		now := make(map[procfs.Key]spent, len(members)+len(unread))
		for i := range members {
			now[members[i].Key()] = m.spentBy(&members[i])
		}
		if m.io {
			if !m.addBytes(members, now) {
				return nil
			}
			if members, reaped = m.reread(members); reaped {
				continue
			}
		}
		for _, key := range unread {
			now[key] = m.members[key]
		}
		return now
	}
	return nil
}

// find returns the members, including zombies, whose figures are not in those of their parents yet. unread has the
// members of the last look that exist but cannot be read, for example for lack of descriptors.
func (m *meter) find() (members []procfs.Process, unread []procfs.Key) {
	found := make(map[procfs.Key]bool)
	add := func(p procfs.Process) {
		members = append(members, p)
		found[p.Key()] = true
	}
	m.reader.Short = false
	var complete bool
	unsure, doubted := make(map[procfs.Key]bool), make(map[procfs.Key]bool) // processes that show no environment
	if group := m.tree.Group(); group != nil {
		complete = group.Each(func(pid int) {
			if p, ok := m.reader.Process(pid); ok {
				add(p)
			}
		})
	} else {
		listed, late, hidden, all := m.tree.Members(func(key procfs.Key) bool { _, before := m.members[key]; return before })
		complete = all
		for _, key := range late {
			unsure[key] = true
		}
		for _, key := range hidden { // in the middle of an exec; if hidden at two looks in a row, no longer a member
			unsure[key] = !m.doubted[key]
			doubted[key] = true
		}
		for _, p := range listed {
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
			// A control group does not list zombies. Any other process that a complete list lacks is no longer a member.
			if p.Dead() || unsure[key] || !complete {
				members = append(members, p)
			}
		case ok || unix.Kill(key.PID, 0) == unix.ESRCH:
			// The process was waited for. reread reads its parent afterwards, whose figures include its own.
		default:
			unread = append(unread, key)
		}
	}
	return members, unread
}

// reread reads the members again, parents first, and returns those that still exist. reaped reports whether one of them
// was waited for meanwhile. That includes a member in state 'X', which is just being waited for: its figures may or may
// not be in its parent's. This member is returned, too.
func (m *meter) reread(members []procfs.Process) (there []procfs.Process, reaped bool) {
	for _, member := range parentsFirst(members) {
		switch p, ok := m.reader.Process(member.PID); {
		case ok && p.Key() == member.Key():
			member = p
			reaped = reaped || p.State == 'X'
		case ok || unix.Kill(member.PID, 0) == unix.ESRCH:
			reaped = true
			continue
		}
		there = append(there, member)
	}
	return there, reaped
}

// parentsFirst returns the processes in an order in which each process follows its parent.
func parentsFirst(all []procfs.Process) []procfs.Process {
	byID := make(map[int]*procfs.Process, len(all))
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
	slices.SortStableFunc(sorted, func(a, b procfs.Process) int { return depth[a.PID] - depth[b.PID] })
	return sorted
}

// spentBy returns the figures of p, without its bytes.
func (m *meter) spentBy(p *procfs.Process) spent {
	s := spent{parent: p.Parent, at: time.Now(), faults: p.Faults, running: p.Running()}
	if !m.io {
		s.children = p.ChildrenCPU
	}
	if p.PID != m.tree.Helper() { // the helper's own work is not that of the command
		if !m.io {
			s.own = p.CPUTime()
		}
		if m.tree.Group() == nil {
			var ok bool
			if s.waited, ok = m.reader.Waited(p.PID); !ok {
				// Keep the figure and the time of the last look, so that the next look covers the time since then.
				before := m.members[p.Key()]
				s.waited, s.at = before.waited, before.at
			}
		}
	}
	return s
}

// addBytes sets the bytes of each member in now, or leaves those of the last look if they cannot be read. It returns
// false if no bytes could be read, and some were late.
func (m *meter) addBytes(members []procfs.Process, now map[procfs.Key]spent) (known bool) {
	type answer struct {
		n   uint64
		err error
	}
	answers, returned := procfs.Gather(m.tree.Patience(), len(members), func(r *procfs.Reader, i int) (a answer) {
		a.n, a.err = r.Bytes(&members[i])
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
		default: // the process has ended, or may not be read
			s.bytes, s.old = m.members[key].bytes, true
		}
		now[key] = s
	}
	return known || !late
}
