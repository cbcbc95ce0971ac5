//go:build unix && !linux

package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// onDeath returns nil: on these systems the command outlives a deadline that is killed.

func onDeath(syscall.Signal) *syscall.SysProcAttr { return nil }

const fionread = 0x4004667f // package unix has no name for it

const canBlockSIGPIPE = false

func blockSIGPIPE() {}

// raise ends the program by a signal, so that its parent sees what the command died of. It returns if
// that does not work. deadline itself dumps no core.
func raise(sig syscall.Signal) {
	if os.Getpid() == 1 || unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) != nil {
		return
	}
	resetToDefault(sig)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second) // another thread may get the signal
}
