//go:build !plan9

package proctree

import "syscall"

// A Signal is a signal as the system has it: a number.
type Signal = syscall.Signal
