package proctree

// What a look at work has to know is who belongs to whom, again and again while nothing changes.
// To read an environment may take as long as its process waits for a processor, and the rest of a
// look does not. So these looks read an environment once, and again when it has moved, which is what
// an exec does. Who kills looks anew.

// An environment is that of one process, between two of its execs.
type environment struct {
	procKey
	at uint64
}

// remembered has the cookies of what was there at the last of these looks. It is guarded by recalls.
var remembered map[environment]string

// recall is scan for who wants members only: what was read before is not blank, hidden or late. nil
// is that there was no descriptor or memory. The list is others' too, and must not be changed.
func recall() []proc {
	all, _ := recalls.Join(together, func() ([]proc, bool) { return readNew(), true })
	return all
}

// readNew reads all processes but this one, and the environments of those that are not remembered.
func readNew() []proc {
	var r procReader
	seen, complete := r.each(allPids(), always)
	if !complete || len(seen) == 0 {
		return nil
	}
	since := hostStart()
	all, now := make([]proc, 0, len(seen)), make(map[environment]string, len(remembered))
	var unknown []int
	for _, p := range seen {
		cookies, ok := remembered[p.environment()]
		switch {
		case ok:
			p.cookies = cookies
			now[p.environment()] = cookies
		case p.start >= since && !p.dead():
			unknown = append(unknown, p.pid)
			continue
		}
		all = append(all, p)
	}
	anew, _ := r.eachWithEnviron(newWaiting(lateTime), unknown, since, always)
	if r.short {
		return nil
	}
	for _, p := range anew {
		// Where it is was seen first: if it has moved since, it is read once more.
		if p.environAt != 0 && !p.blank && !p.hidden && !p.late && len(p.cookies) <= maxRemembered {
			now[p.environment()] = p.cookies
		}
	}
	remembered = now
	return append(all, anew...)
}

// maxRemembered is how many bytes of cookies are remembered of a process. Each command within
// another one's adds 27.
const maxRemembered = 4 << 10

func (p *proc) environment() environment { return environment{p.key(), p.environAt} }
