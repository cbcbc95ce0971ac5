package proctree

import (
	"crypto/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
	"golang.org/x/sys/unix"
)

// setCookie adds a new random cookie to the variable cookieEnv of cmd.Env, and returns the cookie. It does not change
// an environment with a NUL, so that cmd.Start returns an error: cmd.Environ would drop the variable with the NUL, and
// the command would run without it.
func setCookie(cmd *exec.Cmd) string {
	cookie := rand.Text()
	if slices.ContainsFunc(cmd.Env, func(v string) bool { return strings.Contains(v, "\x00") }) {
		return cookie
	}
	value := cookie
	if outer := os.Getenv(cookieEnv); outer != "" {
		value = outer + "," + cookie
	}
	env := cmd.Environ()
	cmd.Env = append(env[:len(env):len(env)], cookieEnv+"="+value)
	return cookie
}

// A descendants finds the members of a tree: the leader and the processes that it has started, inside and outside its
// process group. Unless reaped is set, its owner reaps the leader only after the last use, so that the ids of the
// leader and of its group cannot be reused.
type descendants struct {
	leader    *leader
	cookie    string // "" if members are found without their environments
	begun     time.Time
	reaped    bool // os/exec may reap the leader: do not identify members by the ids of the leader and its group
	except    int  // the id of a process that is not a member, such as the helper, or 0
	blind     bool // the last look of a sweep could not read /proc, for example for lack of descriptors
	noMembers bool // when the leader had ended no other member was left, so none can begin

	mu sync.Mutex // guards the maps
	// noted has members that a later look may not recognize: an exiting process loses its environment some time before
	// it is gone, and a process whose parent has ended gets another parent.
	noted map[procfs.Key]bool
	// suspected has hidden processes that were once near; a set-user-ID program may have changed its user since.
	suspected map[procfs.Key]bool
	// adopted has members, alive or not, that are children of this process; see reapAdopted.
	adopted map[procfs.Key]bool
}

// members lists the living members, the leader included. unsure has the processes that may be members: they show no
// environment, for example because they are in the middle of an exec, or get no processor. ok is false if /proc cannot
// be read now, for example for lack of descriptors.
func (d *descendants) members() (found, unsure []proc, ok bool) {
	return d.membersOf(scan(fullPatience))
}

func (d *descendants) membersOf(all []proc) (found, unsure []proc, ok bool) {
	found, unsure = d.among(all)
	return found, orphans(all, unsure), len(all) > 0
}

func (d *descendants) among(all []proc) (found, unsure []proc) {
	byID := !d.reaped && !d.leader.lost()
	known, since := d.known(all, byID)
	for i := range all {
		p := &all[i]
		if known[p.PID] {
			d.noteAdopted(p)
		}
		switch {
		case p.Dead(), p.PID == d.except:
		case known[p.PID]:
			found = append(found, *p)
		case p.Start < since:
		case p.blank, p.late, p.hidden && byID && d.suspects(p):
			unsure = append(unsure, *p)
		}
	}
	return found, unsure
}

// suspects reports whether p, whose environment may not be read, may be a member: p is near, or was near before.
func (d *descendants) suspects(p *proc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.near {
		add(&d.suspected, p)
	}
	return d.suspected[p.Key()]
}

// add adds the key of p to the set *keys, which may be nil.
func add(keys *map[procfs.Key]bool, p *proc) {
	if *keys == nil {
		*keys = make(map[procfs.Key]bool)
	}
	(*keys)[p.Key()] = true
}

// known returns the ids of the members in all, zombies and the helper included. byID means that the ids of the leader
// and its group are still its own. since is the Start of the leader, or 0 if the leader is not found by its id.
func (d *descendants) known(all []proc, byID bool) (known map[int]bool, since uint64) {
	known = make(map[int]bool)
	for i := range all {
		p := &all[i]
		ours := byID && (p.PID == d.leader.pid || p.Group == d.leader.pid)
		if ours && p.PID == d.leader.pid {
			since = p.Start
		}
		if ours || (d.cookie != "" && strings.Contains(p.cookies, d.cookie)) || d.isNoted(p.Key()) {
			known[p.PID] = true
		}
	}
	descend(all, known, since)
	return known, since
}

// descend adds to known the descendants of its processes, apart from those that began before since.
func descend(all []proc, known map[int]bool, since uint64) {
	for n := -1; n != len(known); { // each round adds the children of the processes that the rounds before have found
		n = len(known)
		for i := range all {
			if p := &all[i]; known[p.Parent] && p.Start >= since {
				known[p.PID] = true
			}
		}
	}
}

// orphans returns the processes of unsure that the command can have started. A member whose parent is a member is
// found through its parent. Any other member is losing its parent, which is exiting, or has lost it, and has been
// adopted by process 1, this process or an ancestor of this process.
func orphans(all, unsure []proc) (kept []proc) {
	if len(unsure) == 0 {
		return nil
	}
	parents := make(map[int]int, len(all))
	adopts := map[int]bool{0: true, 1: true, os.Getpid(): true}
	for i := range all {
		parents[all[i].PID] = all[i].Parent
	}
	above := make(map[int]bool)
	for pid := os.Getppid(); !adopts[pid]; pid = parents[pid] {
		adopts[pid], above[pid] = true, true
	}
	for i := range all {
		if p := &all[i]; p.Dead() || p.Exiting {
			adopts[p.PID] = true // p shows no environment anymore, so it may have been a member
		}
	}
	for n := -1; n != len(kept); { // each round adds the children of the processes that are kept
		n, kept = len(kept), kept[:0]
		for _, p := range unsure {
			// A parent that is not listed has ended during the look. An ancestor of this process may have started p
			// itself: that is assumed if both run as another user.
			_, there := parents[p.Parent]
			if !there || adopts[p.Parent] && !(p.foreign && above[p.Parent] && isForeign(p.Parent)) {
				adopts[p.PID] = true
				kept = append(kept, p)
			}
		}
	}
	return kept
}

// isForeign reports whether a process runs as another user, or does not show its user in time.
func isForeign(pid int) bool {
	same, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) bool { return r.SameUser(pid) })
	return !same
}

// lateTime bounds the time for which signal looks again because environments are late.
const lateTime = 300 * time.Millisecond

// signal sends sigs, once, to each member outside the leader's process group. It reports whether it has found any such
// member. While the environment of a process is late, and for at most lateTime, it looks again: the process may be a
// member, which would miss the signals.
func (d *descendants) signal(sigs ...unix.Signal) (any bool) { return d.signalEach(d.members, sigs...) }

func (d *descendants) signalEach(members func() (found, unsure []proc, ok bool), sigs ...unix.Signal) (any bool) {
	signalled := make(map[procfs.Key]bool)
	until := time.Now().Add(lateTime)
	for b := patient.Backoff(0); ; {
		found, unsure, _ := members()
		for i := range found {
			key := found[i].Key()
			if found[i].Group == d.leader.pid || signalled[key] {
				continue
			}
			signalled[key] = true
			for _, sig := range sigs {
				signalProc(key, sig)
			}
		}
		if !slices.ContainsFunc(unsure, func(p proc) bool { return p.late }) || !b.Sleep(until) {
			return len(signalled) > 0
		}
	}
}

// note records the members before their parents are killed, because some can be found only through their parents. It
// reads no environments: members that have the cookie can still be found afterwards.
func (d *descendants) note() {
	all, _ := tableNow()
	found, _ := d.among(all)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = nil // found includes the members noted before that are still alive
	for i := range found {
		add(&d.noted, &found[i])
	}
}

// shortLived bounds the age of the commands that quickly handles: no system runs through all its process ids in this
// time.
const shortLived = 100 * time.Millisecond

// quickly reports whether the command certainly has no member besides the leader. It reads only the processes whose ids
// were assigned after the leader's, and returns false at once if the command began more than shortLived ago. If kill
// is set, it kills the members that it finds.
func (d *descendants) quickly(deadline time.Time, kill bool) bool {
	if time.Since(d.begun) > shortLived {
		return false
	}
	found, complete := d.newcomers(d.leader.pid, deadline, kill)
	return complete && len(found) == 0
}

// strike kills the members in found. It notes them first, because a killed process shows no environment, and its
// children may be found only through it.
func (d *descendants) strike(found []proc) {
	d.mu.Lock()
	for i := range found {
		add(&d.noted, &found[i])
	}
	d.mu.Unlock()
	for i := range found {
		signalProc(found[i].Key(), unix.SIGKILL)
	}
}

func (d *descendants) isNoted(key procfs.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.noted[key]
}

// noteAdopted adds p, a member, to d.adopted if it is a child of this process other than the leader.
func (d *descendants) noteAdopted(p *proc) {
	if p.Parent != os.Getpid() || p.PID == d.leader.pid {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	add(&d.adopted, p)
}

// newcomers finds the members whose process ids were assigned after the id after, and kills them if kill is set.
// complete is false if there may be others.
func (d *descendants) newcomers(after int, deadline time.Time, kill bool) (found []proc, complete bool) {
	return newcomers(after, deadline, func(pids []int) ([]proc, bool) {
		all, _, short := environs(procfs.NewPatience(quickPatience), pids, 0, always)
		found, unsure := d.among(all)
		if kill {
			d.strike(found)
		}
		// It does not matter whether a process that has ended, or is exiting, was a member: it starts no children.
		return found, !short && len(withoutEnded(unsure)) == 0
	})
}
