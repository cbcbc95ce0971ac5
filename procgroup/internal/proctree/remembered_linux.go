package proctree

import "github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"

// A Meter looks for the members again and again while little changes. The read of an environment may block until its
// process gets a processor; the other reads of a look do not. So these looks read an environment once, and again when
// its address has changed, as by an exec. A look that kills reads all environments.

// An environment identifies the environment of one process between two of its execs.
type environment struct {
	procfs.Key
	at uint64 // the address
}

func (p *proc) environment() environment { return environment{p.Key(), p.EnvironAt} }

// remembered has the cookies of the environments that the last readNew has found. Only readNew uses it, and recalls
// makes one call of readNew at a time.
var remembered map[environment]string

// maxRemembered bounds the cookies, in bytes, that are remembered for a process. A process has one cookie, of
// 27 bytes, for each supervisor above it.
const maxRemembered = 4 << 10

// recall is like scan, but uses the remembered cookies in place of environments that were read before. It returns nil
// if not all processes can be read, for example for lack of descriptors. Other callers share the list, so it must not
// be changed.
func recall() []proc {
	all, _ := recalls.Join(together, func() ([]proc, bool) { return readNew(), true })
	return all
}

// readNew reads all processes except this one, and the environments that are not in remembered. It returns nil if not
// all processes can be read. It updates remembered.
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
		// The address was read before the environment: if an exec came in between, the next look finds another address
		// and reads the environment again.
		if p.EnvironAt != 0 && !p.blank && !p.hidden && !p.late && len(p.cookies) <= maxRemembered {
			now[p.environment()] = p.cookies
		}
	}
	remembered = now
	return append(all, read...)
}
