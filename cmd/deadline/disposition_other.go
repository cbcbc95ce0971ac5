//go:build unix && (!linux || mips || mipsle || mips64 || mips64le)

package main

import (
	"os/signal"
	"syscall"
)

// ignore ignores a signal, if package signal can: a signal such as SIGSEGV is not ignored, and ends deadline too if it
// is the signal of a limit.
func ignore(sig syscall.Signal) {
	if sig != 0 {
		signal.Ignore(sig)
	}
}

// whileIgnored calls f while the signal is ignored. The signal stays ignored afterwards.
func whileIgnored(sig syscall.Signal, f func()) {
	ignore(sig)
	f()
}

func resetToDefault(sig syscall.Signal) { signal.Reset(sig) }
