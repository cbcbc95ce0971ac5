//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proctree

import "golang.org/x/sys/unix"

// isDevice reports whether fd refers to a character device, such as a terminal. It returns false if fd cannot be
// examined.
func isDevice(fd int) bool {
	var info unix.Stat_t
	return unix.Fstat(fd, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFCHR
}
