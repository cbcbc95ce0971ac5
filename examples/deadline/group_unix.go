//go:build unix

package main

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// catch has signals sent to c that would otherwise end us and leave the command alone:
// those that GNU timeout passes on, two more, and the one that the limit sends. What was
// ignored when we were started stays so.
func catch(c chan<- os.Signal, limit sysSignal) {
	wanted := []os.Signal{
		unix.SIGALRM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGUSR1, unix.SIGUSR2,
	}
	for _, sig := range wanted {
		if sig == limit || !wasIgnored(sig.(sysSignal)) {
			signal.Notify(c, sig)
		}
	}
	// The Go runtime sends SIGURG to itself all the time.
	if limit != 0 && limit != unix.SIGURG {
		signal.Notify(c, limit)
	}
	// A command in the background that uses the terminal stops its whole group, and who is
	// to stop it must not be stopped. They are caught and not yet ignored, because the
	// command would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTTIN, unix.SIGTTOU)
	// A write to a pipe that nobody reads shall be an error and not the end.
	if !wasIgnored(unix.SIGPIPE) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	}
}

// ignoreTerminalStops is for when the command has been started. Where the signals are only
// caught, a write to the terminal would be tried again and again.
func ignoreTerminalStops() {
	ignore(unix.SIGTTIN)
	ignore(unix.SIGTTOU)
}

// keepIgnored has the command inherit what was ignored when we were started. SIGCHLD is
// left out: a command that ignores it unawares does not find its children. So is the
// signal of the limit, which has to work.
func keepIgnored(limit sysSignal) {
	for sig := sysSignal(1); sig < 65; sig++ {
		if sig != limit && sig != unix.SIGCHLD && wasIgnored(sig) {
			signal.Ignore(sig)
		}
	}
}

// signalGroup signals our process group but ourselves. From then on we ignore that
// signal, as GNU timeout does; KILL and STOP reach us too.
func signalGroup(sig sysSignal) {
	ignore(sig)
	_ = unix.Kill(0, sig)
}

// raise ends the program by a signal, so that whoever waits for us sees what the command
// died of. It returns if that does not work. There is no core dump of us.
func raise(sig sysSignal) {
	if !noCoreDump() {
		return
	}
	resetToDefault(sig)
	_ = unix.Kill(os.Getpid(), sig)
	time.Sleep(time.Second) // it may be another thread that gets it
}
