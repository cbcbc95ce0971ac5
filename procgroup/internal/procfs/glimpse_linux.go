package procfs

import "time"

// A Glimpse describes a process at one moment.
type Glimpse struct {
	Process
	There bool // the process exists
	Known bool // There is right; false if the process could not be read in time, or for lack of descriptors or memory
}

// SameAs reports whether g, a Glimpse of the process id in key, shows the process of key, and not a later one.
func (g *Glimpse) SameAs(key Key) bool { return g.There && g.Start == key.Start }

// Glance returns a Glimpse of one process. It may block: call it only in the read function of Gather or Ask.
func Glance(r *Reader, pid int) (g Glimpse) {
	g.Process, g.There = r.Process(pid)
	g.Known = g.There || !r.Short && !r.Late
	r.Short, r.Late = false, false
	return g
}

// moment is the patience of StatusOf.
const moment = 10 * time.Millisecond

// StatusOf returns a Glimpse of one process. It does not block: if the process cannot be read in time, Known is false.
func StatusOf(pid int) Glimpse {
	g, _ := Ask(NewPatience(moment), func(r *Reader) Glimpse { return Glance(r, pid) })
	return g
}
