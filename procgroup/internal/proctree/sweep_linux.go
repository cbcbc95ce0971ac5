package proctree

import (
	"slices"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"
)

// lastLookTime is how long, after the deadline, the last look at new processes may last, and how long the processes
// killed last may take to be gone.
const lastLookTime = 50 * time.Millisecond

// A phase is the next step of a sweep.
type phase int

const (
	hunt    phase = iota // look quickly: members were killed, which may have forked, or others may be new
	doubt                // look with patience: some processes do not show whether they are members
	confirm              // look once more: nothing was found, but members were before
	over
)

// maxDoubts is how often in a row a sweep looks again because of the same doubtful processes, or of too many new
// ones. Doubtful processes that differ from look to look may be generations of a member, each met between fork and
// exec. For these a sweep looks maxStrangers times more, or, once it has caught a member, until the deadline.
const (
	maxDoubts    = 4
	maxStrangers = 16
)

// A sweep is the state of a search for members.
type sweep struct {
	phase     phase
	caught    []proc              // by the last look that caught any
	doubted   map[procfs.Key]bool // all that were ever doubtful
	strangers int                 // looks with processes that had not been doubtful before
	doubts    int                 // looks in a row with no other doubtful processes than before
}

// A sighting is the finding of one look of a sweep.
type sighting struct {
	blind    bool   // nothing was seen, for example for lack of descriptors
	caught   []proc // members, which are killed
	doubtful []proc
	partial  bool // there were too many new processes to look at each
}

// next records the finding of a look, and returns the next phase.
func (s *sweep) next(seen sighting) phase {
	switch {
	case len(seen.caught) > 0:
		s.caught, s.doubts, s.phase = seen.caught, 0, hunt
	case seen.blind:
		// The phase stays: this look has shown nothing.
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

// addStrangers adds doubtful processes, and reports whether some of them were not doubtful before.
func (s *sweep) addStrangers(doubtful []proc) (some bool) {
	if s.doubted == nil {
		s.doubted = make(map[procfs.Key]bool)
	}
	for i := range doubtful {
		if key := doubtful[i].Key(); !s.doubted[key] {
			s.doubted[key], some = true, true
		}
	}
	return some
}

// sweep kills the members until there are none, or until the deadline, and reaps those of them that have
// become children of this process. It returns those that are left, and, in any case, the processes that may be
// members.
func (d *descendants) sweep(deadline time.Time) (survivors, unidentified []int) {
	defer d.reapAdopted(deadline)
	if d.noMembers || d.quickly(deadline, true) {
		return nil, nil
	}
	var s sweep
	for b := patient.Backoff(0); ; {
		look := scanQuickly
		if s.phase == doubt && time.Until(deadline) >= fullPatience { // else it ends too long after the deadline
			look = scan
		}
		last := lastPID() // before the look: what begins during it has a later id, and is found by newcomers
		found, unsure, ok := d.membersOf(look())
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

// atLast looks once more when the time of a sweep is over, because a process that was killed last may have left a
// child, and returns what is left. If there was such a child, or may have been, that child may have left one in turn.
// Then the processes seen last are returned as unidentified, even if they are gone: a process that runs on must not
// go unreported.
func (d *descendants) atLast(killed []proc) (survivors, unidentified []int) {
	last := lastPID()
	found, unsure, ok := d.membersOf(scanQuickly())
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

// lasting returns those of the killed processes that are still alive after lastLookTime.
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

func pids(found []proc) []int {
	var ids []int
	for _, p := range found {
		if !slices.Contains(ids, p.PID) {
			ids = append(ids, p.PID)
		}
	}
	return ids
}
