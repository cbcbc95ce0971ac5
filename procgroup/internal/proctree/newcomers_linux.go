package proctree

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"
)

// A look at all processes can be evaded: what forks and ends while it is under way may be
// in it neither itself nor with its child. But every child gets a new process id, and the
// system tells the last one that it gave out. So a look is complete once the processes
// that have begun since have been looked at too, and there are no more of them.

// maxProbes is how many process ids are looked at one by one, and maxRounds how often in a
// row there may be new ones, none of which is a member.
const (
	maxProbes = 64
	maxRounds = 16
)

// lastPid is the process id that was given out last, 0 where that is not known.
func lastPid() int {
	var buf [64]byte
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return 0
	}
	line := bytes.TrimSpace(buf[:n])
	return int(number(line[bytes.LastIndexByte(line, ' ')+1:]))
}

// newcomers calls fn with what read returns of the processes whose ids were given out after the given
// one, time and again until there are no new ones. fn returns the members, and whether all are known.
// It is not complete if there may be more. found is what fn gave last.
func newcomers(after int, deadline time.Time, read func(r *procReader, pids []int) []proc, fn func(all []proc) (found []proc, sure bool)) (found []proc, complete bool) {
	var r procReader
	for rounds := 0; rounds < maxRounds; rounds++ {
		last := lastPid()
		if after == 0 || last < after || last-after > maxProbes {
			return found, false // the ids have begun anew, or there are too many
		}
		if last == after {
			return found, true
		}
		var pids []int
		for after < last {
			after++
			pids = append(pids, after)
		}
		more, sure := fn(read(&r, pids))
		if len(more) > 0 {
			found, rounds = more, 0
		}
		if !sure || r.short || !time.Now().Before(deadline) {
			return found, false
		}
	}
	return found, false
}

// newcomers kills the members that have begun after the process with the given id.
func (d *descendants) newcomers(after int, deadline time.Time) (found []proc, complete bool) {
	read := func(r *procReader, pids []int) []proc {
		all, _ := r.eachWithEnviron(newWaiting(glance), pids, 0, always)
		return all
	}
	return newcomers(after, deadline, read, func(all []proc) ([]proc, bool) {
		found, unsure := d.among(all)
		d.strike(found)
		// What has ended since, or is about to, has all of its children behind it.
		return found, len(here(unsure)) == 0
	})
}
