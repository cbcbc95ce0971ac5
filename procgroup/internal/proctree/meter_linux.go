package proctree

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// CanMeter returns why the work of a tree cannot be told here, if it cannot.
func CanMeter(io bool) error {
	if !procWorks() {
		return unsupported("/proc does not show the processes of this process id namespace")
	}
	if _, err := os.ReadFile("/proc/self/io"); io && err != nil {
		return fmt.Errorf("%w: %w", unsupported("this kernel does not count bytes by process"), err)
	}
	return nil
}

// A meter is what a linuxTree had used of one kind when it was last looked at.
//
// The control group counts the processor time of all that is or was in it. It counts bytes
// too, if its parent has enabled that, which is rare: so these come from the members, and
// in addition from the group where it has them. Without a group everything comes from the
// members.
type meter struct {
	tree    *linuxTree
	io      bool // bytes, and not processor time
	reader  procReader
	members map[procKey]spent
	looked  time.Time         // when
	cpu     time.Duration     // of the control group
	starved time.Duration     // too
	bytes   uint64            // of the control group
	sockets map[uint64]uint64 // bytes of the members' connections, by inode
	doubted map[procKey]bool  // those of the last look that show no environment
}

// Meter counts, of what has ended, what its parent has waited for, or the control group has
// kept. What a process that nobody waits for has used between the last look and its end is
// missed where there is no group.
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

// byMembers is not ok where none is seen, or the bytes of all come late.
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

// startTries is how often starts looks at one member: what it finds may have ended before its state is read.
const startTries = 4

// starts reports whether a member that starts programs is at it now. A program that takes a millisecond is not
// in a list of members that was made before, and while it runs its parent sleeps: a tree that does nothing but start such
// programs would be asleep at most looks. So the children are asked for here, of members that had page faults
// since the last look; forking takes some.
func (m *meter) starts(now map[procKey]spent) bool {
	runs := func(pid int) bool {
		p, ok := m.reader.get(pid)
		return ok && p.running()
	}
	for key, s := range now {
		if s.faults <= m.members[key].faults {
			continue
		}
		for range startTries {
			if slices.ContainsFunc(m.reader.childrenOf(key.pid), runs) || runs(key.pid) {
				return true
			}
		}
	}
	return false
}

// timeIn has the processor time of the group, and the page faults of the members, as far as they are
// found: only a group with a memory controller counts those.
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
	bytes, counted := c.ioBytes()
	if counted && bytes > m.bytes {
		// The two overlap: what is read from a disk is read by a process, as a rule.
		used.IO = max(used.IO, bytes-m.bytes)
		m.bytes = bytes
	}
	return used, ok || counted
}

// membersNow is what each member has used. One that cannot be read now has used what it had: forgotten,
// it would have used all of it anew at the next look.
func (m *meter) membersNow() map[procKey]spent {
	members, unread := m.find()
	var now map[procKey]spent
	for tries := 0; ; tries++ {
		members = m.refresh(members)
		if len(members) == 0 {
			return nil
		}
		now = make(map[procKey]spent, len(members))
		for i := range members {
			now[members[i].key()] = m.spentBy(&members[i])
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

// find returns the members, zombies included: what they have used is not their parent's yet. unread
// are those of the look before that live and cannot be read, for want of descriptors, say.
func (m *meter) find() (members []proc, unread []procKey) {
	t, found := m.tree, make(map[procKey]bool)
	add := func(p proc) {
		members = append(members, p)
		found[p.key()] = true
	}
	m.reader.short = false
	var complete bool
	unsure, doubted := make(map[procKey]bool), make(map[procKey]bool) // whether they are members: they show no environment
	if t.cgroup != nil {
		complete = t.cgroup.each(func(pid int) {
			if p, ok := m.reader.get(pid); ok {
				add(p)
			}
		})
	} else {
		var all []proc
		all, complete = t.look()
		for i := range all {
			p, key := &all[i], all[i].key()
			if _, before := m.members[key]; !before {
				continue
			}
			switch {
			case p.late, p.exiting:
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
	complete = complete && !m.reader.short
	for key := range m.members {
		if found[key] {
			continue
		}
		switch p, ok := m.reader.get(key.pid); {
		case ok && p.key() == key:
			// A control group does not list zombies. What else is not in a complete list has left.
			if p.dead() || unsure[key] || !complete {
				members = append(members, p)
			}
		case ok || unix.Kill(key.pid, 0) == unix.ESRCH:
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

// refresh reads the members again, without those that were waited for meanwhile. What a process has used
// becomes its parent's when that waits for it, and must be counted neither twice nor never. So the
// parents are read first: a child that is still there after that is not in them. And if one is not
// there any more, it may be in its parent or not, and all are read anew.
func (m *meter) refresh(members []proc) []proc {
	members = parentsFirst(members)
	for gone := true; gone; {
		gone = false
		for i := 0; i < len(members); i++ {
			if p, ok := m.reader.get(members[i].pid); ok && p.key() == members[i].key() {
				members[i] = p
			} else if ok || unix.Kill(members[i].pid, 0) == unix.ESRCH {
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
		byID[all[i].pid] = &all[i]
	}
	depth := make(map[int]int, len(all))
	for i := range all {
		n := 0
		for p := byID[all[i].ppid]; p != nil && n < len(all); p = byID[p.ppid] {
			n++
		}
		depth[all[i].pid] = n
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b proc) int { return depth[a.pid] - depth[b.pid] })
	return sorted
}

// look lists all processes, with what it takes to tell the members. All meters that are asked at the
// same time share it.
func (t *linuxTree) look() (all []proc, complete bool) {
	if t.byCookie() {
		all = recall()
		return all, all != nil
	}
	return listAll()
}

// byCookie reports whether the members are told by their environments too.
func (t *linuxTree) byCookie() bool { return t.others != nil && t.others.cookie != "" }

// list returns the members among all where there is no control group, zombies and the helper
// included.
func (t *linuxTree) list(all []proc) (members []proc) {
	byID := !t.lost()
	var known map[int]bool
	if t.others != nil {
		known, _ = t.others.known(all, byID)
	}
	for _, p := range all {
		if known[p.pid] || (byID && t.others == nil && p.pgrp == t.pid) {
			members = append(members, p)
		}
	}
	return members
}

func (m *meter) spentBy(p *proc) spent {
	s := spent{parent: p.ppid, at: time.Now(), faults: p.faults, running: p.running()}
	if !m.io {
		s.children = ticks(p.children)
	}
	if m.tree.helper == nil || p.pid != m.tree.pid { // what the helper itself does is not the command's work
		if !m.io {
			s.own = p.cpuTime()
		}
		if m.tree.cgroup == nil {
			var ok bool
			if s.waited, ok = m.reader.waited(p.pid); !ok {
				before := m.members[p.key()]
				s.waited, s.at = before.waited, before.at
			}
		}
	}
	return s
}

// addBytes adds what each of the members has read and written. It reports false where nothing is known,
// as what was asked was late, and whether there is one that was waited for meanwhile.
func (m *meter) addBytes(members []proc, now map[procKey]spent) (known, gone bool) {
	type answer struct {
		n   uint64
		err error
	}
	answers, returned := gather(newWaiting(lateTime), len(members), func(r *procReader, i int) (a answer) {
		a.n, a.err = r.bytes(&members[i])
		return a
	})
	late := false
	for i, a := range answers {
		key := members[i].key()
		s := now[key]
		switch {
		case returned[i] && a.err == nil:
			s.bytes, known = a.n, true
		case !returned[i] || a.err == errLate || isShort(a.err):
			late = true
			fallthrough
		default: // it has ended, or may not be read
			gone = gone || a.err == unix.ENOENT || a.err == unix.ESRCH
			s.bytes, s.old = m.members[key].bytes, true
		}
		now[key] = s
	}
	return known || !late, gone
}

// tick is the unit of times in /proc, on all systems that Go runs on.
const tick = 10 * time.Millisecond

func ticks(n uint64) time.Duration { return time.Duration(n) * tick }

// cpuTime asks the clock of the process, made as clock_getcpuclockid(3) does: it is exact,
// and 1 % of a core is less than a tick where the idle limit is short.
func (p *proc) cpuTime() time.Duration {
	const cpuclockSched = 2
	var ts unix.Timespec
	if unix.ClockGettime(int32(^p.pid<<3|cpuclockSched), &ts) != nil {
		return ticks(p.own)
	}
	return time.Duration(ts.Nano())
}

// bytes is what a process has read and written, with its children that were reaped: by
// system calls, or from and to a disk, as with a file that is mapped, whichever is more.
func (r *procReader) bytes(p *proc) (n uint64, err error) {
	var buf [512]byte
	b, err := r.askFile(p, "/io", buf[:])
	if err != nil {
		return 0, err
	}
	field := func(name string) uint64 {
		_, rest, _ := bytes.Cut(b, []byte(name+": "))
		word, _, _ := bytes.Cut(rest, []byte{'\n'})
		return number(word)
	}
	return max(field("rchar"), field("\nread_bytes")) + max(field("wchar"), field("\nwrite_bytes")), nil
}

// waited is how long the main thread of a process has been ready to run and did not. It is not ok where
// that cannot be read, or the kernel does not count it.
func (r *procReader) waited(pid int) (d time.Duration, ok bool) {
	var buf [64]byte
	b, err := r.read(pid, "/schedstat", buf[:], false)
	_, rest, _ := bytes.Cut(b, []byte{' '})
	word, _, _ := bytes.Cut(rest, []byte{' '})
	return time.Duration(number(word)), err == nil
}
