package main

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// onDeath makes the system send the command a signal when deadline dies, as of a SIGKILL. For the
// system, what counts is the death of the thread that started the command; see start.
func onDeath(sig syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: sig}
}

// fionread is the request for the number of unread bytes.
const fionread = unix.TIOCINQ

// canBlockSIGPIPE reports whether blockSIGPIPE has an effect.
const canBlockSIGPIPE = true

// blockSIGPIPE binds the goroutine to its thread for good and blocks SIGPIPE there: a write to a pipe
// without a reader then only returns an error. The signal stays pending, and disappears with the
// thread when the goroutine ends.
func blockSIGPIPE() {
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGPIPE - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// raise ends the program by a signal, so that its parent sees what the command died of. If that does
// not work, raise returns at once: the signal is sent to this very thread, which has got it when the
// call returns. Process 1 is not ended by its own signals. deadline itself dumps no core.
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
