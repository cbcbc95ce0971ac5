//go:build unix && !cgo

package main

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

const knowsInherited = false

// wasIgnored reports whether a signal was ignored when the program was started, as far as the Go
// runtime tells; see inherited_cgo.go. The runtime leaves the signals of job control alone, so they
// need not be restored.
func wasIgnored(sig syscall.Signal) bool {
	return (sig == unix.SIGHUP || sig == unix.SIGINT) && signal.Ignored(sig)
}

func wasClosed(int) bool { return false }
