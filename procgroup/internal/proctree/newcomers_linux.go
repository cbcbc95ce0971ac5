package proctree

import (
	"time"
)

// A look at all processes can miss a member: while it reads /proc, a process may fork and end, so that it lists neither
// the process nor its child. But every child gets a new process id, and the system shows the id that it assigned last.
// So a look is complete once the processes that have begun since its start have been read too, and there are no more.

// maxProbes bounds the new process ids that newcomers reads in one round, and maxRounds the rounds in a row that find
// new process ids but no member.
const (
	maxProbes = 64
	maxRounds = 16
)

// newcomers calls look with the process ids that were assigned after the id after, and again with newer ids until there
// are none. look returns the members among them, and whether it could decide for each. found has the members of the
// last round that found any. complete is false if there may be others, or the deadline has passed.
func newcomers(after int, deadline time.Time, look func(pids []int) (found []proc, sure bool)) (found []proc, complete bool) {
	for rounds := 0; rounds < maxRounds; rounds++ {
		last := lastPID()
		if after == 0 || last < after || last-after > maxProbes {
			return found, false // an id is unknown, the ids have wrapped around, or there are too many
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
