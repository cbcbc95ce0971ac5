//go:build dragonfly || freebsd || netbsd || openbsd

package procgroup

// groupMembers lists what is alive in a process group: that there is something is known,
// and the group's id stands for it.
func groupMembers(pgid int) []int { return []int{pgid} }
