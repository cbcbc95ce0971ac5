//go:build unix && (!linux || mips || mipsle || mips64 || mips64le)

package main

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// Here it is only what package signal offers: SIGSEGV and its like cannot be ignored, so
// as a limit's signal they end us too.

func ignore(sig sysSignal) {
	if sig != 0 {
		signal.Ignore(sig)
	}
}

func resetToDefault(sig sysSignal) { signal.Reset(sig) }

func noCoreDump() bool { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) == nil }
