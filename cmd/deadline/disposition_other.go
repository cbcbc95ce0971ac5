//go:build unix && (!linux || mips || mipsle || mips64 || mips64le)

package main

import (
	"os/signal"
	"syscall"
)

// ignore ignores a signal as far as package signal can: SIGSEGV and the like cannot be ignored, so as
// the signal of a limit they end deadline too.

func ignore(sig syscall.Signal) {
	if sig != 0 {
		signal.Ignore(sig)
	}
}

// whileIgnored runs f while the signal is ignored. The signal stays ignored afterwards.
func whileIgnored(sig syscall.Signal, f func()) {
	ignore(sig)
	f()
}

func resetToDefault(sig syscall.Signal) { signal.Reset(sig) }
