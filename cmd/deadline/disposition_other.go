//go:build unix && (!linux || mips || mipsle || mips64 || mips64le)

package main

import (
	"os/signal"
	"syscall"
)

// These systems have only what package signal offers: SIGSEGV and the like cannot be ignored, so as
// the signal of a limit they end deadline too.

func ignore(sig syscall.Signal) {
	if sig != 0 {
		signal.Ignore(sig)
	}
}

// whileIgnored runs f with the signal ignored. It stays ignored.
func whileIgnored(sig syscall.Signal, f func()) {
	ignore(sig)
	f()
}

func resetToDefault(sig syscall.Signal) { signal.Reset(sig) }
