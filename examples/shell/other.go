//go:build !unix

package main

import "syscall"

// sigcont is a signal that this system does not have.
const sigcont = syscall.Signal(18)

// forgetSecrets does nothing, because this system cannot replace a running program.
func forgetSecrets([]string) error { return nil }
