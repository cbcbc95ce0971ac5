// Deadline runs a command under limits, as timeout(1) of GNU coreutils does, and under
// one more: with --idle, the command is also stopped when it has not written anything
// for some time.
//
//	deadline [OPTION]... DURATION COMMAND [ARG]...
//	deadline --idle 30s -k 5s 1h make -j8
//
// Options, durations, messages and exit codes are those of GNU timeout, so it can take
// that program's place, also under its name. What differs is in the list below.
//
// # How it works
//
// Both limits are those of one execution of package timeout, see supervise.go: the
// function that is executed waits for the command, and what the command writes is its
// heartbeat. What follows a limit, a signal and perhaps a kill, is decided outside: it
// is a program's policy and not the engine's.
//
// The command runs in the process group of deadline, which deadline makes its own first,
// as GNU timeout does. A terminal's Ctrl-C and Ctrl-Z then reach both, a pipeline of a
// shell stays one job, and the command may read from the terminal. Package procgroup
// gives each command a group of its own, which is right for a server and wrong here, so
// it is used only on systems without process groups of this kind, see
// supervise_other.go.
//
// # What differs from GNU timeout
//
//   - Signals that were ignored when deadline was started stay ignored for the command,
//     but for the one that the limit sends. GNU timeout gives the command SIGINT, SIGQUIT,
//     SIGHUP, SIGALRM and SIGTERM with their default action.
//   - SIGUSR1 and SIGUSR2 are passed on too, and SIGPIPE does not end deadline; GNU
//     timeout dies of them and leaves the command unsupervised.
//   - "-k=5" is read as "-k 5". -p and -f are the short forms that GNU timeout has had
//     since version 9.6.
//   - The longest time is 292 years.
//   - Messages are in English, with the quotation marks of the locale.
//   - Built without cgo, deadline cannot know all that it inherited: standard streams
//     that were closed are open on /dev/null for the command, and of the signals that
//     were ignored only SIGHUP, SIGINT and those of job control stay so. See
//     inherited_cgo.go.
package main

import "os"

func main() {
	e := run(os.Args)
	if e.signal != 0 {
		raise(e.signal)
	}
	os.Exit(e.code)
}

// The exit codes of the program itself.
const (
	exitFailed        = 125 // usage, or something that is not the command's
	exitCannotExecute = 126
	exitNotFound      = 127
)

// An ending is how the program ends.
type ending struct {
	code    int
	signal  sysSignal // end by this signal instead, as the command did
	limited bool      // a limit was reached, so the code stands whatever else fails
}

// run is main without the end.
func run(args []string) ending {
	r := newReporter(args[0])
	opts, err := parse(args[1:])
	if err != nil {
		return ending{code: r.refuse(err)}
	}
	e := supervise(opts, r)
	if r.hasFailed() && !e.limited {
		e.code = exitFailed
	}
	return e
}
