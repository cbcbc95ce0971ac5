package waits

// restless has the classes that exclude a wait for input: a process waits only if none of its threads has any of them.
const restless = onExternal | isRunning | isStopped | isUnknown

// verdict decides whether a tree waits for input. all has its processes. asks is the id of the process that waits for
// input, or 0 with None.
func verdict(all []waiter) (w State, asks int) {
	certain := true
	reads := -1
	for i := range all {
		p := &all[i]
		// A timeout in any thread excludes certainty. It may be that of a maintenance thread of a language runtime, but
		// a thread that does work every few seconds looks the same.
		certain = certain && p.class&(restless|onTimer) == 0
		if p.class&onInput != 0 && (reads < 0 || p.Start > all[reads].Start) {
			reads = i
		}
	}
	if reads < 0 {
		return None, 0
	}
	asks = all[reads].PID
	if certain {
		return InputCertainly, asks
	}
	for i := range all {
		if p := &all[i]; p.class&onInput != 0 && p.class&restless == 0 && quietAround(all, p.PID) {
			return InputIfPrompted, p.PID
		}
	}
	return None, 0
}

// quietAround reports whether no ancestor of a process in the tree is running, stopped or unknown, and no descendant
// has a restless thread.
func quietAround(all []waiter, pid int) bool {
	byID := make(map[int]*waiter, len(all))
	for i := range all {
		byID[all[i].PID] = &all[i]
	}
	// below reports whether one process descends from another. Reused ids may form a cycle.
	below := func(pid, ancestor int) bool {
		for n := 0; n < len(all) && byID[pid] != nil; n++ {
			if pid = byID[pid].Parent; pid == ancestor {
				return true
			}
		}
		return false
	}
	for i := range all {
		p := &all[i]
		if p.class&restless != 0 && below(p.PID, pid) || p.class&(isRunning|isStopped|isUnknown) != 0 && below(pid, p.PID) {
			return false
		}
	}
	return true
}
