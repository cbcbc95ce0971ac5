package proctree

import "golang.org/x/sys/unix"

const canListGroup = true

// groupMembers lists the living members of a process group. If they cannot be listed, the id of the
// group stands for them. Signalling a group of zombies fails with EPERM on this system, so such a
// group counts as empty.
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
