//go:build !mips && !mipsle && !mips64 && !mips64le

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Package signal lets go only of those signals that the Go runtime does not need itself:
// not of SIGSEGV, and for SIGQUIT it makes the runtime print stacks. So the system is asked
// directly. The handler is the first field of its structure, and what follows may be 0.

// A disposition is the system's struct sigaction: flags, mask and all fit, on any processor.
type disposition [8]uintptr

var (
	defaultAction = disposition{0} // SIG_DFL
	ignoreAction  = disposition{1} // SIG_IGN
)

func setDisposition(sig sysSignal, action disposition) (before disposition) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&action)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

func ignore(sig sysSignal)         { setDisposition(sig, ignoreAction) }
func resetToDefault(sig sysSignal) { setDisposition(sig, defaultAction) }

// whileIgnored runs f while we ignore a signal.
func whileIgnored(sig sysSignal, f func()) {
	before := setDisposition(sig, ignoreAction)
	f()
	setDisposition(sig, before)
}
