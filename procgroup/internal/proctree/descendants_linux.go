package proctree

import (
	"crypto/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cookieEnv is the variable by which descendants are known: children inherit it, however
// far they move away. Its value is a list, because a command may be a supervisor itself.
const cookieEnv = "TOOLDEADLINE_TREE"

// setCookie puts a new cookie into the environment of cmd and returns it. An environment
// that os/exec refuses, because of a NUL in it, is left for os/exec to refuse: cmd.Environ
// drops such a variable, and without it the command may do something else.
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

// descendants finds what a command has started, outside its group too. Unless reaped is
// set, the leader must not have been reaped: its id, and its group's, are still its own.
type descendants struct {
	leader *leader
	cookie string // none: they are known by their parents alone
	begun  time.Time
	reaped bool // go by the cookie, and not by ids
	except int  // a process that is not a member: the helper
	blind  bool // the last look of the sweep saw nothing, for want of descriptors, say
	// noted are members that may not look like it any more: they let go of their environment some
	// time before they are gone, and of their parent where it is killed first.
	mu    sync.Mutex
	noted map[procKey]bool
	// adopted are members, alive or not, that are children of this process, see reapAdopted.
	adopted map[procKey]bool
}

// members lists what is alive, the leader too. unsure is what may belong to them too: it
// shows no environment, which may be because it is in the middle of an exec, or busy. It is not
// ok if /proc cannot be read now, for want of descriptors, say.
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
		if known[p.pid] {
			d.noteAdopted(p)
		}
		switch {
		case p.dead(), p.pid == d.except:
		case known[p.pid]:
			found = append(found, *p)
		case p.start < since:
		case p.blank, p.late, p.hidden && byID && ofSameUser(p.pid):
			unsure = append(unsure, *p)
		}
	}
	return found, unsure
}

// known returns the ids of the members, zombies and the helper included, and when the
// leader began.
func (d *descendants) known(all []proc, byID bool) (known map[int]bool, since uint64) {
	known = make(map[int]bool)
	for i := range all {
		p := &all[i]
		ours := byID && (p.pid == d.leader.pid || p.pgrp == d.leader.pid)
		if ours && p.pid == d.leader.pid {
			since = p.start
		}
		if ours || (d.cookie != "" && strings.Contains(p.cookies, d.cookie)) || d.isNoted(p.key()) {
			known[p.pid] = true
		}
	}
	// Children of those that are known; their children on the next round.
	for grown := true; grown; {
		grown = false
		for i := range all {
			if p := &all[i]; known[p.ppid] && !known[p.pid] && p.start >= since {
				known[p.pid] = true
				grown = true
			}
		}
	}
	return known, since
}

// orphans returns those of unsure that can be what a command has started: a member with a
// parent that is one is known by it, and one without has been adopted, by process 1 or
// by a process above this one.
func orphans(all, unsure []proc) (kept []proc) {
	if len(unsure) == 0 {
		return nil
	}
	parents := make(map[int]int, len(all))
	adopts := map[int]bool{0: true, 1: true, os.Getpid(): true}
	for i := range all {
		parents[all[i].pid] = all[i].ppid
	}
	for pid := os.Getppid(); !adopts[pid]; pid = parents[pid] {
		adopts[pid] = true
	}
	for i := range all {
		if p := &all[i]; p.dead() || p.exiting {
			adopts[p.pid] = true // it cannot be told any more whether it was a member
		}
	}
	for n := -1; n != len(kept); { // the children of those that are kept, too
		n, kept = len(kept), kept[:0]
		for _, p := range unsure {
			// A parent that is not there has ended during the look.
			if _, there := parents[p.ppid]; !there || adopts[p.ppid] {
				adopts[p.pid] = true
				kept = append(kept, p)
			}
		}
	}
	return kept
}

// signal signals the members outside the leader's group, and reports whether there are
// any.
func (d *descendants) signal(sigs ...unix.Signal) (any bool) {
	found, _, _ := d.members()
	found = slices.DeleteFunc(found, func(p proc) bool { return p.pgrp == d.leader.pid })
	for i := range found {
		for _, sig := range sigs {
			signalProc(&found[i], sig)
		}
	}
	return len(found) > 0
}

// note remembers the members, before those are killed that show by being their parents whose they
// are. It does without environments, which show it afterwards as well.
func (d *descendants) note() {
	found, _ := d.among(list())
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = make(map[procKey]bool, len(found)) // those of before are among them, as far as they live
	for i := range found {
		d.noted[found[i].key()] = true
	}
}

// shortLived is how long a command may have taken for quickly to make sense: no system
// gives out all its process ids in this time.
const shortLived = 100 * time.Millisecond

// quickly reports whether there are no members, without a look at all processes, where
// the command has ended so soon that only a few process ids were given out since it was
// started: whatever it has started has one of those. Members that it comes across are
// killed.
func (d *descendants) quickly(deadline time.Time) bool {
	if time.Since(d.begun) > shortLived {
		return false
	}
	found, complete := d.newcomers(d.leader.pid, deadline)
	return complete && len(found) == 0
}

// strike kills members.
func (d *descendants) strike(found []proc) {
	d.mu.Lock()
	if len(found) > 0 && d.noted == nil {
		d.noted = make(map[procKey]bool)
	}
	for i := range found {
		d.noted[found[i].key()] = true
	}
	d.mu.Unlock()
	for i := range found {
		signalProc(&found[i], unix.SIGKILL)
	}
}

func (d *descendants) isNoted(key procKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.noted[key]
}

// lastLookTime is how long, after the deadline, a last look may be at what is new, and what was
// killed last may take to be gone.
const lastLookTime = 50 * time.Millisecond

// maxUnsure is how often the sweep looks again because of processes without an environment, or of
// too many new ones. Where the former are others each time, they may be generations of a member that
// are met between fork and exec: once a member was met it looks on until the deadline, and before
// that maxFresh times.
const (
	maxUnsure = 4
	maxFresh  = 16
)

// sweep kills the members until there are none, or until the deadline, and reaps those of them that
// have become children of this process. It returns those that are left, and, in any case, what may be
// members.
func (d *descendants) sweep(deadline time.Time) (survivors, unidentified []int) {
	defer d.reapAdopted(deadline)
	if d.quickly(deadline) {
		return nil, nil
	}
	unsureFor, freshFor, clean := 0, 0, 0
	var caught []proc              // by the last look that found any
	seen := make(map[procKey]bool) // of unsure
	look := scanQuickly            // as long as there is somebody to kill, who may fork meanwhile
	for b := backoff(0); ; {
		last := lastPid()
		found, unsure, ok := d.membersOf(look())
		d.strike(found)
		more, complete := d.newcomers(last, deadline)
		switch {
		case len(found) > 0 || len(more) > 0:
			clean, unsureFor = -1, 0 // so two looks must find nothing
			caught = append(found, more...)
			look = scanQuickly
		case !ok:
		case (caught != nil || freshFor < maxFresh) && addNew(seen, unsure):
			unsureFor = 0
			freshFor++
			look = scanQuickly
		case (len(unsure) > 0 || !complete) && unsureFor < maxUnsure:
			unsureFor++
			look = scanQuickly
			if time.Until(deadline) >= lateTime { // or it ends too long after the deadline
				look = scan
			}
		case clean < 0:
			clean++
		default:
			return nil, pids(here(unsure))
		}
		if !b.sleep(deadline) {
			return d.atLast(caught)
		}
	}
}

// addNew adds processes to those seen, and reports whether some had not been.
func addNew(seen map[procKey]bool, all []proc) (some bool) {
	for i := range all {
		if key := all[i].key(); !seen[key] {
			seen[key], some = true, true
		}
	}
	return some
}

// atLast returns what is left when the time of a sweep is over. A child may have taken the place of
// what was killed last, so there is one more look. If there was one, or that is not certain, a child
// of its own may have taken its place in turn: then those that were seen last are unidentified, though
// they may be gone, for what goes on must not be hidden.
func (d *descendants) atLast(killed []proc) (survivors, unidentified []int) {
	last := lastPid()
	found, unsure, ok := d.membersOf(scanQuickly())
	d.blind = !ok
	young := slices.DeleteFunc(slices.Clone(found), func(p proc) bool { return d.isNoted(p.key()) })
	d.strike(found)
	more, complete := d.newcomers(last, time.Now().Add(lastLookTime))
	young = append(young, more...)
	survivors, unidentified = pids(lasting(slices.Concat(killed, young))), pids(here(unsure))
	switch {
	case len(survivors) > 0:
	case len(young) > 0:
		unidentified = append(unidentified, pids(young)...)
	case len(unidentified) == 0 && (!complete || len(unsure) > 0):
		unidentified = append(unidentified, pids(killed)...)
	}
	return survivors, unidentified
}

// lasting returns what is still there of what was killed, after a moment for it to die.
func lasting(killed []proc) []proc {
	var r procReader
	for b, until := backoff(0), time.Now().Add(lastLookTime); ; {
		left := slices.DeleteFunc(slices.Clone(killed), func(p proc) bool {
			now, ok := r.get(p.pid)
			return !ok || now.start != p.start || now.dead()
		})
		if len(left) == 0 || !b.sleep(until) {
			return left
		}
	}
}

// here leaves out what a second look at each shows to be gone, or about to be: what ends
// between the two reads that make one look is alive in the first and shows no environment
// in the second, whoever's it is.
func here(unsure []proc) []proc {
	var r procReader
	return slices.DeleteFunc(unsure, func(p proc) bool {
		now, ok := r.get(p.pid)
		return !ok || now.start != p.start || now.dead() || now.exiting
	})
}

func pids(found []proc) []int {
	var ids []int
	for _, p := range found {
		if !slices.Contains(ids, p.pid) {
			ids = append(ids, p.pid)
		}
	}
	return ids
}
