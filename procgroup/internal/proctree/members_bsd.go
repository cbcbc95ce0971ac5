//go:build dragonfly || freebsd || netbsd || openbsd

package proctree

import "golang.org/x/sys/unix"

// canListGroup: x/sys does not have the layout of what these systems tell about processes.
const canListGroup = false

// groupMembers returns the id of the group for what is in it, if there is something. A
// zombie counts until it is reaped. Not to be allowed to signal means that it is there.
func groupMembers(pgid int) []int {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return nil
	}
	return []int{pgid}
}
