package proctree

import "golang.org/x/sys/unix"

const canListGroup = true

// groupMembers lists what is alive in a process group. Where it cannot be listed, the id
// of the group stands for it; a group of zombies answers EPERM there, and so is empty.
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
