package procgroup

import "syscall"

const someSignals = "syscall.Note"

func canHandle(sig syscall.Note) bool { return sig != syscall.SIGKILL }

func hasSignal(sig syscall.Note) bool { return sig != "" }
