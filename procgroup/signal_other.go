//go:build !windows && !js && !plan9

package procgroup

import "syscall"

// someSignals describes in an error the signals that hasSignal accepts.
const someSignals = "syscall.Signal from 1 to 64"

func canHandle(sig syscall.Signal) bool { return sig != syscall.SIGKILL && sig != syscall.SIGSTOP }

func hasSignal(sig syscall.Signal) bool { return sig >= 0 && sig <= 64 }
