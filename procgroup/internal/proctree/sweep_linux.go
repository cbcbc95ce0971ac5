package proctree

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// lastLookTime bounds, after the deadline of a sweep, the last look for new processes, and then the wait for the
// processes killed last to exit.
const lastLookTime = 50 * time.Millisecond

// A phase is the next step of a sweep.
type phase int

const (
	hunt    phase = iota // look quickly: killed members may have forked, or there are doubtful processes not seen before
	doubt                // look with patience: some processes do not show whether they are members
	confirm              // look once more: the last look has found nothing, but earlier looks have killed members
	over                 // stop
)

// A doubtful process does not show whether it is a member. maxDoubts bounds the looks in a row that a sweep adds
// because of the same doubtful processes, or of too many new processes. Doubtful processes that differ from look to
// look may be a chain of members, each of which forks and ends. Because of these a sweep adds up to maxStrangers
// looks, or, once it has killed a member, looks until the deadline.
const (
	maxDoubts    = 4
	maxStrangers = 16
)

// A sweep is the state of a search for members.
type sweep struct {
	phase     phase
	caught    []proc              // the members that the last look to find any has killed
	doubted   map[procfs.Key]bool // all processes that were ever doubtful
	strangers int                 // number of looks with doubtful processes not in doubted before
	doubts    int                 // number of looks in a row without such processes
}

// A sighting is the result of one look of a sweep.
type sighting struct {
	blind    bool   // /proc could not be read, for example for lack of descriptors
	caught   []proc // members, which the look has killed
	doubtful []proc
	partial  bool // some new processes were not looked at, or did not show whether they are members
}

// next records the result of a look, and returns the next phase.
func (s *sweep) next(seen sighting) phase {
	switch {
	case len(seen.caught) > 0:
		s.caught, s.doubts, s.phase = seen.caught, 0, hunt
	case seen.blind:
		// The phase stays, because this look could not read /proc.
	case (s.caught != nil || s.strangers < maxStrangers) && s.addStrangers(seen.doubtful):
		s.strangers++
		s.doubts, s.phase = 0, hunt
	case (len(seen.doubtful) > 0 || seen.partial) && s.doubts < maxDoubts:
		s.doubts++
		s.phase = doubt
	case s.caught != nil && s.phase != confirm:
		s.phase = confirm
	default:
		s.phase = over
	}
	return s.phase
}

// addStrangers adds the processes to s.doubted, and reports whether any was not in it before.
func (s *sweep) addStrangers(doubtful []proc) (some bool) {
	for i := range doubtful {
		some = some || !s.doubted[doubtful[i].Key()]
		add(&s.doubted, &doubtful[i])
	}
	return some
}

// sweep kills the members until it finds none, or until the deadline, and reaps those that are children of this
// process. At the deadline, atLast looks once more, for a few times lastLookTime; survivors has the members that are
// still alive then, and is empty if the sweep ends before the deadline. unidentified has the processes that may be
// members, and that it did not kill, and also those that atLast adds.
func (d *descendants) sweep(deadline time.Time) (survivors, unidentified []int) {
	defer d.reapAdopted(deadline)
	if d.noMembers || d.quickly(deadline, true) {
		return nil, nil
	}
	var s sweep
	for b := patient.Backoff(0); ; {
		patience := quickPatience
		if s.phase == doubt && time.Until(deadline) >= fullPatience { // a slow look must not outlast the deadline
			patience = fullPatience
		}
		last := lastPID() // before the look: newcomers finds what begins during it by its later id
		found, unsure, ok := d.membersOf(scan(patience))
		d.strike(found)
		more, complete := d.newcomers(last, deadline, true)
		if s.next(sighting{!ok, append(found, more...), unsure, !complete}) == over {
			return nil, pids(withoutEnded(unsure))
		}
		if !b.Sleep(deadline) {
			return d.atLast(s.caught)
		}
	}
}

// atLast makes the last look of a sweep, after the deadline, and returns the results of the sweep. A process that was
// killed last may have left a child, which atLast kills. That child, or one that atLast cannot rule out, may have left
// a child in turn. Then atLast returns the processes seen last as unidentified, even if they are gone: a process that
// runs on must not go unreported.
func (d *descendants) atLast(killed []proc) (survivors, unidentified []int) {
	last := lastPID()
	found, unsure, ok := d.membersOf(scan(quickPatience))
	d.blind = !ok
	young := slices.DeleteFunc(slices.Clone(found), func(p proc) bool { return d.isNoted(p.Key()) })
	d.strike(found)
	more, complete := d.newcomers(last, time.Now().Add(lastLookTime), true)
	young = append(young, more...)
	survivors, unidentified = pids(lasting(slices.Concat(killed, young))), pids(withoutEnded(unsure))
	switch {
	case len(survivors) > 0:
	case len(young) > 0:
		unidentified = append(unidentified, pids(young)...)
	case len(unidentified) == 0 && (!complete || len(unsure) > 0):
		unidentified = append(unidentified, pids(killed)...)
	}
	return survivors, unidentified
}

// A member other than the leader can be a child of this process: the leader has created it with CLONE_PARENT, or its
// parent has ended and this process is a subreaper or process 1. This process must reap such members, and no other
// children, which belong to the caller. A control group identifies them, even after they have ended and the group is
// removed. Without a control group, the cookie identifies them while they live, and the leader's process group at any
// time. So a member that has left the process group, and ends before a look has found it, stays a zombie.

// reapAdopted reaps the members in d.adopted, which have been killed. It waits for them to end, until the deadline, and
// holds d.mu meanwhile.
func (d *descendants) reapAdopted(deadline time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := patient.Backoff(0); ; {
		for key := range d.adopted {
			if reapChild(key) {
				delete(d.adopted, key)
			}
		}
		if len(d.adopted) == 0 || !b.Sleep(deadline) {
			return
		}
	}
}

// reapChild reaps a child of this process if it has ended. It returns false if the child is still alive, or if its
// state cannot be read in time, and true if there is nothing left to reap.
func reapChild(key procfs.Key) bool {
	// If other code has reaped the child, its id may now belong to a child that the caller has started.
	if p := procfs.StatusOf(key.PID); !p.SameAs(key) || p.Parent != os.Getpid() {
		return p.Known
	}
	pid, err := unix.Wait4(key.PID, nil, unix.WNOHANG, nil)
	return pid == key.PID || err == unix.ECHILD
}

// lasting waits until the killed processes have exited, at most for lastLookTime, and returns those that have not, or
// of which that cannot be read.
func lasting(killed []proc) []proc {
	for b, until := patient.Backoff(0), time.Now().Add(lastLookTime); ; {
		left := slices.DeleteFunc(slices.Clone(killed), func(p proc) bool {
			now := procfs.StatusOf(p.PID)
			return now.Known && (!now.SameAs(p.Key()) || now.Dead())
		})
		if len(left) == 0 || !b.Sleep(until) {
			return left
		}
	}
}
