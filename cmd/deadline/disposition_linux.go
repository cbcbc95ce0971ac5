//go:build !mips && !mipsle && !mips64 && !mips64le

package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Package signal does not reset a signal that the Go runtime needs, such as SIGSEGV, and a reset SIGQUIT
// makes the runtime print stacks. So this file uses the system call. The handler is the first field of
// the system's structure, and the other fields may be 0.

// A disposition has room for the system's struct sigaction on any processor.
type disposition [8]uintptr

var (
	defaultAction = disposition{0} // SIG_DFL
	ignoreAction  = disposition{1} // SIG_IGN
)

func setDisposition(sig syscall.Signal, action disposition) (before disposition) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&action)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

func ignore(sig syscall.Signal)         { setDisposition(sig, ignoreAction) }
func resetToDefault(sig syscall.Signal) { setDisposition(sig, defaultAction) }

// whileIgnored runs f while the signal is ignored.
func whileIgnored(sig syscall.Signal, f func()) {
	before := setDisposition(sig, ignoreAction)
	f()
	setDisposition(sig, before)
}
