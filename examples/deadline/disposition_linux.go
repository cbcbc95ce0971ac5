//go:build !mips && !mipsle && !mips64 && !mips64le

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Package signal gives only those signals back that the Go runtime does not need itself:
// not SIGSEGV, and for SIGQUIT it makes the runtime print stacks. So the system is asked
// directly. The handler is the first field of its structure, and what follows may be 0.

const (
	defaultAction = 0 // SIG_DFL
	ignoreAction  = 1 // SIG_IGN
)

func setDisposition(sig sysSignal, handler uintptr) {
	action := [8]uintptr{handler}
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

func ignore(sig sysSignal)         { setDisposition(sig, ignoreAction) }
func resetToDefault(sig sysSignal) { setDisposition(sig, defaultAction) }

func noCoreDump() bool { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) == nil }
