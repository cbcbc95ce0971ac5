package procfs

import "time"

// A Glimpse describes a process at a moment.
type Glimpse struct {
	Process
	There bool // the process exists
	Known bool // There is known to be right
}

// SameAs reports whether the process of a key is still there.
func (g *Glimpse) SameAs(key Key) bool { return g.There && g.Start == key.Start }

// Glance returns a Glimpse of one process. Call it under Gather or Ask.
func Glance(r *Reader, pid int) (g Glimpse) {
	g.Process, g.There = r.Process(pid)
	g.Known = g.There || !r.Short && !r.Late
	r.Short, r.Late = false, false
	return g
}

// moment bounds how long StatusOf waits for a process.
const moment = 10 * time.Millisecond

// StatusOf returns a Glimpse of one process, in bounded time.
func StatusOf(pid int) Glimpse {
	g, _ := Ask(NewPatience(moment), func(r *Reader) Glimpse { return Glance(r, pid) })
	return g
}
