package main

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// onDeath has the command get a signal when we are gone without having sent it one, as
// after a SIGKILL. To the system, "we" is the thread that starts the command, see start.
func onDeath(sig sysSignal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: sig}
}

// fionread asks how much there is to read.
const fionread = unix.TIOCINQ

// canBlockSIGPIPE says what blockSIGPIPE does.
const canBlockSIGPIPE = true

// blockSIGPIPE binds the goroutine to its thread, for good, and blocks SIGPIPE there: a
// write to a pipe that nobody reads is then an error and nothing else. The signal itself
// stays pending, and goes with the thread when the goroutine ends.
func blockSIGPIPE() {
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGPIPE - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// raise ends the program by a signal, so that whoever waits for us sees what the command
// died of. It returns if that does not work, at once: the signal is sent to this very
// thread, which has it when the call returns. Process 1 is not ended by signals of its
// own. There is no core dump of us.
func raise(sig sysSignal) {
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return
	}
	resetToDefault(sig)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil) // GNU timeout unblocks it too
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), sig)
}
