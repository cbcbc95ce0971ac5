//go:build dragonfly || freebsd || netbsd || openbsd

package proctree

import "golang.org/x/sys/unix"

// canListGroup is false because x/sys lacks the layout of these systems' process information.
const canListGroup = false

// groupMembers returns the id of the group in place of those of its members, or nil if the group is empty. A zombie is
// a member until it is reaped. A group that this process may not signal is not empty.
func groupMembers(pgid int) []int {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return nil
	}
	return []int{pgid}
}
