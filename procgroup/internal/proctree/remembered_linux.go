package proctree

// What a look at work has to know is who belongs to whom, again and again while nothing changes.
// To read an environment may take as long as its process waits for a processor, on a busy machine
// seconds for all of them, and the rest of a look does not. So looks at work read the environment
// of a process once: an exec may drop the cookie, which makes no stranger of a process, and adds
// one only to the leader of a command, which is known by its id. Who kills looks anew.

// remembered is what the last of these looks knew, by process. It is guarded by recalls.
var remembered map[procKey]string

// recall is scan, with environments that may have been read before.
func recall() []proc {
	all, _ := recalls.Do(func() ([]proc, bool) { return readNew(), true })
	return all
}

// readNew reads all processes but this one, and the environments of those that are not remembered.
func readNew() []proc {
	var r procReader
	seen, _ := r.each(allPids(), always)
	since := hostStart()
	all, now := make([]proc, 0, len(seen)), make(map[procKey]string, len(remembered))
	var unknown []int
	for _, p := range seen {
		cookies, ok := remembered[p.key()]
		switch {
		case ok:
			p.cookies = cookies
			now[p.key()] = cookies
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
		if !p.blank && !p.hidden && !p.late && !p.exiting && !p.dead() {
			now[p.key()] = p.cookies
		}
	}
	remembered = now
	return append(all, anew...)
}
