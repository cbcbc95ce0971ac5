//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminating holds the names of the signals that would end deadline and leave the command running. The real-time
// signals would, too.
var terminating = []string{
	"ALRM", "HUP", "INT", "QUIT", "TERM", "PIPE", "USR1", "USR2",
	"ILL", "TRAP", "ABRT", "BUS", "FPE", "SEGV",
	"XCPU", "XFSZ", "SYS", "VTALRM", "IO", "PWR", "STKFLT", "EMT",
}

// catch makes package signal send every terminating signal, and the signal of the limit, to c, except signals that stay
// ignored. It cannot catch SIGPROF and, on Linux, RTMIN, which package signal does not deliver.
func catch(c chan<- os.Signal, limit syscall.Signal) {
	wanted := []syscall.Signal{limit}
	for _, name := range terminating {
		if sig, ok := signalNumber(name); ok { // some systems have only some of the signals
			wanted = append(wanted, sig)
		}
	}
	for sig := realTimeMin; 0 < sig && sig <= realTimeMax; sig++ {
		wanted = append(wanted, sig)
	}
	for _, sig := range wanted {
		switch {
		case sig == 0, staysIgnored(sig, limit):
		case sig == unix.SIGURG: // the Go runtime sends SIGURG to its own threads to preempt goroutines
		case sig == unix.SIGPIPE && !canBlockSIGPIPE:
			// A SIGPIPE from another process cannot be told from a SIGPIPE that a write of deadline has caused.
			signal.Notify(make(chan os.Signal, 1), sig)
		default:
			signal.Notify(c, sig)
		}
	}
	// A background command that uses the terminal makes the kernel stop its whole process group with SIGTTIN or
	// SIGTTOU. Deadline must not be stopped, because it enforces the limits. It catches the signals and does not ignore
	// them yet, because the command would inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTTIN, unix.SIGTTOU)
}

// catchContinue makes package signal send SIGCONT, which means that deadline was stopped and runs again, to c.
func catchContinue(c chan<- os.Signal) {
	if !wasIgnored(unix.SIGCONT) {
		signal.Notify(c, unix.SIGCONT)
	}
}

// ignoreTerminalStops ignores the signals by which a terminal stops a background process. It must be called after the
// command has been started, which would inherit that. If the signals were only caught, a write to the terminal would be
// interrupted and repeated for ever.
func ignoreTerminalStops() {
	ignore(unix.SIGTTIN)
	ignore(unix.SIGTTOU)
}

// staysIgnored reports whether a signal was ignored when deadline was started and stays ignored, in deadline and in the
// command. The signal of the limit and SIGALRM, which acts as a limit, must have an effect even if they were ignored.
// SIGCHLD does not stay ignored, because most commands then cannot wait for their children. SIGTTIN and SIGTTOU are
// handled by catch.
func staysIgnored(sig, limit syscall.Signal) bool {
	switch sig {
	case limit, unix.SIGALRM, unix.SIGCHLD, unix.SIGTTIN, unix.SIGTTOU:
		return false
	}
	return wasIgnored(sig)
}

// keepIgnored ignores the signals that stay ignored, for which the Go runtime has installed handlers, so that the
// command inherits them as ignored.
func keepIgnored(limit syscall.Signal) {
	for sig := syscall.Signal(1); sig <= maxSignal; sig++ {
		if staysIgnored(sig, limit) {
			signal.Ignore(sig)
		}
	}
}

// signalGroup sends a signal to the process group of deadline. Deadline itself ignores the signal from then on, as GNU
// timeout does, except KILL and STOP.
func signalGroup(sig syscall.Signal) {
	ignore(sig)
	_ = unix.Kill(0, sig)
}

// continueGroup sends SIGCONT to the process group of deadline. Deadline ignores it meanwhile, so that it is not taken
// for the end of a stop of deadline.
func continueGroup() {
	whileIgnored(unix.SIGCONT, func() { _ = unix.Kill(0, unix.SIGCONT) })
}
