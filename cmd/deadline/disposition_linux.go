//go:build !mips && !mipsle && !mips64 && !mips64le

package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A disposition holds the kernel's struct sigaction of any processor. The handler is the first field, and the other
// fields may be 0. This file calls rt_sigaction itself, because package signal does not reset a signal that the Go
// runtime needs, such as SIGSEGV, and the runtime prints stacks at a SIGQUIT that package signal has reset.
type disposition [8]uintptr

var (
	defaultAction = disposition{0} // SIG_DFL
	ignoreAction  = disposition{1} // SIG_IGN
)

// setDisposition sets the disposition of a signal, and returns the earlier one.
func setDisposition(sig syscall.Signal, action disposition) (before disposition) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(&action)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

func ignore(sig syscall.Signal)         { setDisposition(sig, ignoreAction) }
func resetToDefault(sig syscall.Signal) { setDisposition(sig, defaultAction) }

// whileIgnored calls f while the signal is ignored, and then restores the disposition.
func whileIgnored(sig syscall.Signal, f func()) {
	before := setDisposition(sig, ignoreAction)
	f()
	setDisposition(sig, before)
}
