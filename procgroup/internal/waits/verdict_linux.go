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
		c := p.main | p.others
		// A timeout in any thread excludes certainty. It may be that of a maintenance thread of a language runtime, but
		// a thread that does work every few seconds looks the same.
		certain = certain && c&(restless|onTimer) == 0
		if c&onInput != 0 && (reads < 0 || p.Start > all[reads].Start) {
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
		p := &all[i]
		if p.main&onInput != 0 || p.others&onInput != 0 {
			if (p.main|p.others)&restless == 0 && quietAround(all, p.PID) {
				return InputIfPrompted, p.PID
			}
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
	for p, n := byID[pid], 0; p != nil && n < len(all); n++ {
		up := byID[p.Parent]
		if up != nil && (up.main|up.others)&(isRunning|isStopped|isUnknown) != 0 {
			return false
		}
		p = up
	}
	for i := range all {
		below := false
		for p, n := &all[i], 0; p != nil && n < len(all); n++ {
			if p.Parent == pid {
				below = true
				break
			}
			p = byID[p.Parent]
		}
		if below && (all[i].main|all[i].others)&restless != 0 {
			return false
		}
	}
	return true
}
