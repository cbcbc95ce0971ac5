//go:build !plan9

package proctree

import "syscall"

// Signal is the type of signals on this system, which are numbers.
type Signal = syscall.Signal
