//go:build windows || js

package procgroup

import "syscall"

const someSignals = "syscall.Signal that this system supports: SIGINT, SIGTERM or SIGKILL"

func canHandle(sig syscall.Signal) bool { return sig != syscall.SIGKILL }

func hasSignal(sig syscall.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGKILL
}
