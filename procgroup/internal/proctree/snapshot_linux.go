package proctree

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Snapshot finds the members anew, and not with scan, which takes as long as there are
// processes: this one stands between a limit and the signal.
func (t *linuxTree) Snapshot(until time.Time) (all []Process, more bool) {
	b, w := &budget{until: until}, newWaiting(viewLate)
	var r procReader
	var members []proc
	var complete bool
	if t.cgroup != nil {
		members, complete = r.each(t.cgroup.pids(), b.next)
		members = append(members, r.zombies(members, b)...)
	} else {
		members, complete = t.find(&r, w, b)
	}
	more = !complete
	if t.helper != nil {
		members = slices.DeleteFunc(members, func(p proc) bool { return p.pid == t.pid })
	}
	if len(members) > maxListed {
		members, more = members[:maxListed], true
	}
	all, described := gather(w, len(members), func(r *procReader, i int) Process { return r.describe(&members[i], true) })
	for i := range all {
		if !described[i] {
			all[i] = r.describe(&members[i], false)
		}
	}
	return all, more
}

// find returns the members where there is no control group. They have ids above the leader's,
// unless the ids have begun anew since.
func (t *linuxTree) find(r *procReader, w *waiting, b *budget) (members []proc, complete bool) {
	leader, ok := r.get(t.pid)
	dir, err := os.Open("/proc")
	if !ok || err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	var above, below []int
	anew := lastPid() < t.pid
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		switch {
		case err != nil || pid == os.Getpid():
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
		all, complete = r.eachWithEnviron(w, pids, leader.start, b.next)
	} else {
		all, complete = r.each(pids, b.next)
	}
	return t.list(all), complete
}

// zombies returns the children of members that have ended: a control group does not list them.
// Those of a main thread are enough for a picture.
func (r *procReader) zombies(members []proc, b *budget) (all []proc) {
	for i := range members {
		for _, pid := range r.childrenOf(members[i].pid) {
			if slices.ContainsFunc(members, func(p proc) bool { return p.pid == pid }) {
				continue
			}
			if p, ok := r.get(pid); ok && p.dead() && b.next() {
				all = append(all, p)
			}
		}
	}
	return all
}

var states = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "uninterruptible", 'T': "stopped", 't': "traced",
	'Z': "zombie", 'X': "dead", 'x': "dead", 'I': "idle", 'P': "parked",
}

// describe reads what else there is to know of a process. What may have to wait for it is to
// be read under gather.
func (r *procReader) describe(p *proc, wait bool) Process {
	d := Process{Pid: p.pid, Parent: p.ppid, State: states[p.state], CPU: p.cpuTime()}
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) == nil {
		d.Age = max(time.Duration(now.Nano())-ticks(p.start), 0)
	}
	var buf [4 << 10]byte
	var text []byte
	if wait {
		text, _ = r.askFile(p, "/cmdline", buf[:])
	}
	if d.Args = splitArgs(text); d.Args == nil { // a zombie, or they do not come
		text, _ = r.read(p.pid, "/comm", buf[:], false)
		d.Args = []string{"[" + strings.TrimSuffix(string(text), "\n") + "]"}
	}
	if p.state != 'R' && !p.dead() {
		text, _ = r.read(p.pid, "/wchan", buf[:], false)
		if d.Wait = string(text); d.Wait == "0" {
			d.Wait = ""
		}
		if d.Wait == "" && wait {
			text, _ = r.askFile(p, "/stack", buf[:])
			d.Wait = topFrames(text)
		}
	}
	return d
}

// maxFrames is how many functions of the kernel are shown.
const maxFrames = 3

// topFrames returns the innermost functions of /proc/<pid>/stack, which only root may read.
func topFrames(stack []byte) string {
	var names []string
	for line := range bytes.Lines(stack) {
		_, name, ok := bytes.Cut(line, []byte("] "))
		if name, _, _ = bytes.Cut(name, []byte{'+'}); ok && len(names) < maxFrames {
			names = append(names, string(bytes.TrimSpace(name)))
		}
	}
	return strings.Join(names, " < ")
}
