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

// setCookie puts a new cookie into the environment of cmd and returns it. It leaves an environment with a NUL
// alone, for os/exec to refuse: cmd.Environ would drop that variable, and without it the command may do something
// else.
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

// descendants finds the processes that a command has started, outside its group too. Unless reaped is set, the
// leader must not have been reaped: its id, and that of its group, are still its own.
type descendants struct {
	leader    *leader
	cookie    string // "" if they are known by their parents alone
	begun     time.Time
	reaped    bool // go by the cookie, and not by ids
	except    int  // a process that is not a member: the helper
	blind     bool // the last look of the sweep saw nothing, for example for lack of descriptors
	noMembers bool // no other member was left when the leader had ended, so there can be no more
	// noted has members that may no longer look like members: a process lets go of its environment some
	// time before it is gone, and gets another parent if its own is killed first.
	mu    sync.Mutex
	noted map[procfs.Key]bool
	// suspected has hidden processes that were near once: a set-user-ID program may become another user's.
	suspected map[procfs.Key]bool
	// adopted has members, alive or not, that are children of this process; see reapAdopted.
	adopted map[procfs.Key]bool
}

// members lists the members that are alive, the leader too. unsure has the processes that may be members: they
// show no environment, for example because they are in the middle of an exec, or busy. ok is false if /proc
// cannot be read now, for example for lack of descriptors.
func (d *descendants) members() (found, unsure []proc, ok bool) { return d.membersOf(scan()) }

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

// suspects reports whether p, which may not be looked at, may be a member.
func (d *descendants) suspects(p *proc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.near && !d.suspected[p.Key()] {
		if d.suspected == nil {
			d.suspected = make(map[procfs.Key]bool)
		}
		d.suspected[p.Key()] = true
	}
	return d.suspected[p.Key()]
}

// known returns the ids of the members, zombies and the helper included, and the start of the leader.
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
	// Children of those that are known; their children on the next round.
	for grown := true; grown; {
		grown = false
		for i := range all {
			if p := &all[i]; known[p.Parent] && !known[p.PID] && p.Start >= since {
				known[p.PID] = true
				grown = true
			}
		}
	}
	return known, since
}

// orphans returns those of unsure that a command can have started. A member whose parent is a member is known by its
// parent, and any other member has been adopted, by process 1 or by an ancestor of this process.
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
			adopts[p.PID] = true // whether p was a member can no longer be found out
		}
	}
	for n := -1; n != len(kept); { // the children of those that are kept, too
		n, kept = len(kept), kept[:0]
		for _, p := range unsure {
			// A parent that is not listed has ended during the look. An ancestor of this process has children of its
			// own, too: if both it and p are another user's, it has started p and not adopted it.
			_, there := parents[p.Parent]
			if !there || adopts[p.Parent] && !(p.foreign && above[p.Parent] && isForeign(p.Parent)) {
				adopts[p.PID] = true
				kept = append(kept, p)
			}
		}
	}
	return kept
}

// isForeign reports whether a process runs as another user.
func isForeign(pid int) bool {
	same, _ := procfs.Ask(procfs.NewPatience(quickPatience), func(r *procfs.Reader) bool { return r.SameUser(pid) })
	return !same
}

// lateTime is how long signal waits for members that do not show their environments in time.
const lateTime = 300 * time.Millisecond

// signal signals the members outside the leader's group, and reports whether there are any. A member that is busy
// may show no environment in time, and would miss the signal, so signal looks again for a moment, after it has
// signalled the others. None gets a signal twice.
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

// note remembers the members before their parents are killed, because some are known only by their parents. It
// reads no environments, which still identify their processes afterwards.
func (d *descendants) note() {
	all, _ := tableNow()
	found, _ := d.among(all)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = make(map[procfs.Key]bool, len(found)) // found includes those noted before that are still alive
	for i := range found {
		d.noted[found[i].Key()] = true
	}
}

// shortLived is how long a command may have taken for quickly to make sense: no system
// gives out all its process ids in this time.
const shortLived = 100 * time.Millisecond

// quickly reports whether a short-lived command certainly has no members. Everything that such a command has started
// has one of the few process ids that were given out since its start, so quickly looks only at those. It reports
// false at once if the command has run for longer than shortLived. With kill it kills the members that it finds.
func (d *descendants) quickly(deadline time.Time, kill bool) bool {
	if time.Since(d.begun) > shortLived {
		return false
	}
	found, complete := d.newcomers(d.leader.pid, deadline, kill)
	return complete && len(found) == 0
}

// strike kills the members in found. It notes them first, so that their children are known once they are gone.
func (d *descendants) strike(found []proc) {
	d.mu.Lock()
	if len(found) > 0 && d.noted == nil {
		d.noted = make(map[procfs.Key]bool)
	}
	for i := range found {
		d.noted[found[i].Key()] = true
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

// noteAdopted remembers p, a member other than the leader, if it is a child of this process.
func (d *descendants) noteAdopted(p *proc) {
	if p.Parent != os.Getpid() || p.PID == d.leader.pid {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.adopted == nil {
		d.adopted = make(map[procfs.Key]bool)
	}
	d.adopted[p.Key()] = true
}

// newcomers finds the members that have begun after the process with the given id, and kills them if kill is set.
// complete is false if there may be more.
func (d *descendants) newcomers(after int, deadline time.Time, kill bool) (found []proc, complete bool) {
	return newcomers(after, deadline, func(pids []int) ([]proc, bool) {
		all, _, short := environs(procfs.NewPatience(quickPatience), pids, 0, always)
		found, unsure := d.among(all)
		if kill {
			d.strike(found)
		}
		// A process that has ended since, or is about to, starts no more children: it need not be sure.
		return found, !short && len(withoutEnded(unsure)) == 0
	})
}
