package procgroup

import "syscall"

const someSignals = "syscall.Signal that Windows supports: SIGINT, SIGTERM or SIGKILL"

func canHandle(sig syscall.Signal) bool { return sig != syscall.SIGKILL }

func hasSignal(sig syscall.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGKILL
}
