package proctree

// look lists all processes, with what it takes to find the members among them. Looks of all meters at the same
// time share one list.
func (t *linuxTree) look() (all []proc, complete bool) {
	if t.byCookie() {
		all = recall()
		return all, all != nil
	}
	return listAll()
}

// byCookie reports whether members are found by their environments, too.
func (t *linuxTree) byCookie() bool { return t.others != nil && t.others.cookie != "" }

// list returns the members among all, zombies and the helper included, of a tree without a control group.
func (t *linuxTree) list(all []proc) (members []proc) {
	byID := !t.lost()
	var known map[int]bool
	if t.others != nil {
		known, _ = t.others.known(all, byID)
	}
	for _, p := range all {
		if known[p.PID] || (byID && t.others == nil && p.Group == t.pid) {
			members = append(members, p)
		}
	}
	return members
}
