package proctree

import (
	"time"
)

// A look at all processes can be evaded: a process that forks and ends while the look is under way may be in it
// neither itself nor with its child. But every child gets a new process id, and the system tells the last one
// that it gave out. So a look is complete once the processes that have begun since have been looked at too, and
// there are no more of them.

// maxProbes is how many process ids are looked at one by one, and maxRounds how often in a row there may be
// new ones, none of which is a member.
const (
	maxProbes = 64
	maxRounds = 16
)

// newcomers calls look with the process ids that were given out after the given one, again and again until there are
// no new ones. look returns the members among them, and whether it could decide for each. found has the members that
// look found last. complete is false if there may be more.
func newcomers(after int, deadline time.Time, look func(pids []int) (found []proc, sure bool)) (found []proc, complete bool) {
	for rounds := 0; rounds < maxRounds; rounds++ {
		last := lastPID()
		if after == 0 || last < after || last-after > maxProbes {
			return found, false // the ids have wrapped around, or there are too many
		}
		if last == after {
			return found, true
		}
		var pids []int
		for after < last {
			after++
			pids = append(pids, after)
		}
		more, sure := look(pids)
		if len(more) > 0 {
			found, rounds = more, 0
		}
		if !sure || !time.Now().Before(deadline) {
			return found, false
		}
	}
	return found, false
}
