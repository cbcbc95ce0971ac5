package main

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// onDeath returns attributes that make the kernel send the command a signal when deadline dies, for example of SIGKILL.
// The kernel sends the signal when the thread that has started the command ends; see start.
func onDeath(sig syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: sig}
}

// fionread is the ioctl request that returns the number of unread bytes.
const fionread = unix.TIOCINQ

// canBlockSIGPIPE says that blockSIGPIPE has an effect.
const canBlockSIGPIPE = true

// blockSIGPIPE locks the goroutine to its thread until the goroutine ends, and blocks SIGPIPE in that thread: a write
// to a pipe without a reader then only returns an error. The signal stays pending, and disappears when the thread ends
// with the goroutine.
func blockSIGPIPE() {
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGPIPE - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// raise ends the program by a signal, so that its parent sees which signal has ended the command. The program dumps no
// core. If the signal does not end the program, because it is process 1, raise returns. It need not wait, because a
// signal that a thread sends to itself is delivered before the call returns.
func raise(sig syscall.Signal) {
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return
	}
	resetToDefault(sig)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil) // GNU timeout unblocks it too
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
}
