//go:build dragonfly || freebsd || netbsd || openbsd

package proctree

import "golang.org/x/sys/unix"

// canListGroup is false because x/sys lacks the layout of these systems' process information.
const canListGroup = false

// groupMembers returns the id of the group, which stands for all its members, or nil if the group is
// empty. A zombie is a member until it is reaped. A group that may not be signalled is not empty.
func groupMembers(pgid int) []int {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return nil
	}
	return []int{pgid}
}
