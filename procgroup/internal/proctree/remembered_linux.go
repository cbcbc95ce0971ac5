package proctree

import "github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"

// A look at work has to know which processes are members, again and again while nothing changes. Reading an
// environment may take as long as its process waits for a processor, and the rest of a look does not. So
// these looks read an environment once, and again when it has moved, which is what an exec does. A look that kills
// reads all of them.

// An environment is the environment of one process between two of its execs.
type environment struct {
	procfs.Key
	at uint64
}

func (p *proc) environment() environment { return environment{p.Key(), p.EnvironAt} }

// remembered has the cookies of the processes that the last of these looks has found. It is guarded by recalls.
var remembered map[environment]string

// maxRemembered is how many bytes of cookies are remembered of a process. Each command within another
// one's adds 27.
const maxRemembered = 4 << 10

// recall is like scan, for looks that need only the members: a process whose environment was read before is not
// blank, hidden or late. It returns nil if there was no descriptor or memory. Other callers share the list, so it
// must not be changed.
func recall() []proc {
	all, _ := recalls.Join(together, func() ([]proc, bool) { return readNew(), true })
	return all
}

// readNew reads all processes but this one, and the environments of those that are not remembered.
func readNew() []proc {
	seen, complete := statuses(procfs.NewPatience(fullPatience), pidsNow(), always)
	if !complete || len(seen) == 0 {
		return nil
	}
	since := procfs.SelfStart()
	all, now := make([]proc, 0, len(seen)), make(map[environment]string, len(remembered))
	var unknown []int
	for _, p := range seen {
		cookies, ok := remembered[p.environment()]
		switch {
		case ok:
			p.cookies = cookies
			now[p.environment()] = cookies
		case p.Start >= since && !p.Dead():
			unknown = append(unknown, p.PID)
			continue
		}
		all = append(all, p)
	}
	read, _, short := environs(procfs.NewPatience(fullPatience), unknown, since, always)
	if short {
		return nil
	}
	for _, p := range read {
		// The address was read before the environment: if the environment has moved since, the next look reads it
		// again.
		if p.EnvironAt != 0 && !p.blank && !p.hidden && !p.late && len(p.cookies) <= maxRemembered {
			now[p.environment()] = p.cookies
		}
	}
	remembered = now
	return append(all, read...)
}
