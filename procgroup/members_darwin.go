package procgroup

import "golang.org/x/sys/unix"

// groupMembers lists what is alive in a process group.
func groupMembers(pgid int) (alive []int) {
	const zombie = 5 // SZOMB
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return nil
	}
	for i := range procs {
		if p := &procs[i].Proc; p.P_stat != zombie {
			alive = append(alive, int(p.P_pid))
		}
	}
	return alive
}
