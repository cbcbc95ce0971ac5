//go:build unix && !linux

package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// onDeath returns nil, because these systems send no signal when deadline is killed: the command outlives it.
func onDeath(syscall.Signal) *syscall.SysProcAttr { return nil }

// fionread is FIONREAD, the ioctl request that returns the number of unread bytes. Package unix does not define it.
const fionread = 0x4004667f

const canBlockSIGPIPE = false

func blockSIGPIPE() {}

// raise ends the program by a signal, so that its parent sees which signal has ended the command. The program dumps no
// core. If the signal does not end the program, raise returns.
func raise(sig syscall.Signal) {
	if os.Getpid() == 1 || unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) != nil {
		return
	}
	resetToDefault(sig)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second) // the signal may be delivered to another thread
}
