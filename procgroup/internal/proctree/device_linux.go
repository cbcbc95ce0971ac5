package proctree

import "github.com/tooldeadline/tooldeadline/procgroup/internal/procfs"

// isDevice reports whether fd refers to a character device, such as a terminal.
func isDevice(fd int) bool { return procfs.IsDevice(fd) }
