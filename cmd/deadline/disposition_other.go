//go:build unix && (!linux || mips || mipsle || mips64 || mips64le)

package main

import "os/signal"

// Here it is only what package signal offers: SIGSEGV and its like cannot be ignored, so
// as a limit's signal they end us too.

func ignore(sig sysSignal) {
	if sig != 0 {
		signal.Ignore(sig)
	}
}

// whileIgnored runs f while we ignore a signal, and from then on.
func whileIgnored(sig sysSignal, f func()) {
	ignore(sig)
	f()
}

func resetToDefault(sig sysSignal) { signal.Reset(sig) }
