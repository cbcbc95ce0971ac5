package proctree

import "golang.org/x/sys/unix"

const canListGroup = true

// groupMembers lists the living members of a process group. If they cannot be listed, it returns the id of the group if
// the group can be signalled, and otherwise nil: on macOS, signalling a group of zombies fails with EPERM.
func groupMembers(pgid int) (alive []int) {
	const zombie = 5 // SZOMB
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		if unix.Kill(-pgid, 0) == nil {
			return []int{pgid}
		}
		return nil
	}
	for i := range procs {
		if p := &procs[i].Proc; p.P_stat != zombie {
			alive = append(alive, int(p.P_pid))
		}
	}
	return alive
}
