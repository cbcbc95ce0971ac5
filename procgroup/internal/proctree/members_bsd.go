//go:build dragonfly || freebsd || netbsd || openbsd

package proctree

import "golang.org/x/sys/unix"

// canListGroup reports whether groupMembers lists the members of a group. On these systems it cannot, because x/sys
// lacks the layout of their process information.
const canListGroup = false

// groupMembers returns the id of the group in place of those of its members, or nil if the group is empty. A zombie is
// a member until it is reaped. A group that this process may not signal is not empty.
func groupMembers(pgid int) []int {
	if unix.Kill(-pgid, 0) == unix.ESRCH {
		return nil
	}
	return []int{pgid}
}
