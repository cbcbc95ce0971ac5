//go:build unix && !cgo

package main

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// knowsInherited says that wasIgnored and wasClosed do not detect every signal and stream; see inherited_cgo.go.
const knowsInherited = false

// wasIgnored reports whether a signal was ignored when the program was started. It detects only SIGHUP and SIGINT, for
// which the Go runtime keeps the disposition. The runtime does not change the signals of job control, so they stay
// ignored anyway.
func wasIgnored(sig syscall.Signal) bool {
	return (sig == unix.SIGHUP || sig == unix.SIGINT) && signal.Ignored(sig)
}

// wasClosed returns false, because the Go runtime has opened standard streams that were closed.
func wasClosed(int) bool { return false }
