//go:build !unix

package main

import (
	"strings"
	"syscall"
)

// defaultSignal is the signal of a limit. On systems without signals, package procgroup translates it.
const defaultSignal = syscall.SIGTERM

func parseSignal(s string) (syscall.Signal, error) {
	switch strings.TrimPrefix(strings.ToUpper(s), "SIG") {
	case "TERM", "15":
		return defaultSignal, nil
	case "KILL", "9":
		return syscall.SIGKILL, nil
	}
	return 0, usageError(quote(s) + ": not supported on this system, which has only TERM and KILL")
}

func raise(syscall.Signal) {}

func blockSIGPIPE() {}

func wasClosed(int) bool { return false }

func reason(err error) string { return err.Error() }
