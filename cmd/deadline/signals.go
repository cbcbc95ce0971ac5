//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminating has the names of the signals whose default action would end deadline and leave the
// command running. The real-time signals are of that kind too.
var terminating = []string{
	"ALRM", "HUP", "INT", "QUIT", "TERM", "PIPE", "USR1", "USR2",
	"ILL", "TRAP", "ABRT", "BUS", "FPE", "SEGV",
	"XCPU", "XFSZ", "SYS", "VTALRM", "IO", "PWR", "STKFLT", "EMT",
}

// catch directs every terminating signal, and the signal of the limit, to c. SIGPROF and, on Linux,
// RTMIN are missing: package signal does not deliver them.
func catch(c chan<- os.Signal, limit syscall.Signal) {
	wanted := []syscall.Signal{limit}
	for _, name := range terminating {
		if sig, ok := signalNumber(name); ok { // not every system has all of them
			wanted = append(wanted, sig)
		}
	}
	for sig := realTimeMin; 0 < sig && sig <= realTimeMax; sig++ {
		wanted = append(wanted, sig)
	}
	for _, sig := range wanted {
		switch {
		case sig == 0, staysIgnored(sig, limit):
		case sig == unix.SIGURG: // the Go runtime sends it to itself all the time
		case sig == unix.SIGPIPE && !canBlockSIGPIPE:
			// A SIGPIPE that was sent cannot be told from one that a write of deadline caused.
			signal.Notify(make(chan os.Signal, 1), sig)
		default:
			signal.Notify(c, sig)
		}
	}
	// A command in the background that uses the terminal stops its whole group, and deadline,
	// which has to stop the command, must not be stopped. The signals are caught and not yet
	// ignored, because the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTTIN, unix.SIGTTOU)
}

// catchContinue sends a value to c each time that deadline was stopped and runs again.
func catchContinue(c chan<- os.Signal) {
	if !wasIgnored(unix.SIGCONT) {
		signal.Notify(c, unix.SIGCONT)
	}
}

// ignoreTerminalStops ignores the signals by which a terminal stops a background process. It is called once the
// command has been started. If the signals were only caught, a write to the terminal would be tried again and again.
func ignoreTerminalStops() {
	ignore(unix.SIGTTIN)
	ignore(unix.SIGTTOU)
}

// staysIgnored reports whether a signal that was ignored when deadline was started stays ignored, in deadline and in
// the command. The signal of the limit and SIGALRM, which is a limit, too, must have an effect even if they were
// ignored. SIGCHLD must not stay ignored, because a command that does not expect that cannot wait for its children.
// SIGTTIN and SIGTTOU are set by deadline itself; see catch.
func staysIgnored(sig, limit syscall.Signal) bool {
	switch sig {
	case limit, unix.SIGALRM, unix.SIGCHLD, unix.SIGTTIN, unix.SIGTTOU:
		return false
	}
	return wasIgnored(sig)
}

// keepIgnored makes the command inherit the signals that stay ignored, which the Go runtime has changed.
func keepIgnored(limit syscall.Signal) {
	for sig := syscall.Signal(1); sig <= maxSignal; sig++ {
		if staysIgnored(sig, limit) {
			signal.Ignore(sig)
		}
	}
}

// signalGroup signals the process group of deadline, but not deadline, which ignores
// the signal from then on, as GNU timeout does. KILL and STOP reach deadline too.
func signalGroup(sig syscall.Signal) {
	ignore(sig)
	_ = unix.Kill(0, sig)
}

// continueGroup continues the stopped processes of the process group. The signal, which deadline gets as well, does
// not mean that deadline was stopped.
func continueGroup() {
	whileIgnored(unix.SIGCONT, func() { _ = unix.Kill(0, unix.SIGCONT) })
}
