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
// puts each command into a group of its own, which is right for a server and wrong here, so
// it is used only on systems without process groups of this kind, see
// supervise_other.go.
//
// Output that goes through deadline is passed on after a limit, too, for as long as -k says
// that the command may live, or 5 s, and for a second after the command's end in any case.
// What nobody takes in that time is lost; deadline then says how many bytes that was. A
// SIGKILL to the process group, which is the end of deadline, waits for it.
//
// Time during which deadline itself was stopped, as between Ctrl-Z and fg, does not count
// for --idle. It does for DURATION, as with GNU timeout.
//
// # What differs from GNU timeout
//
// The model is GNU coreutils 9.11. Where the one on your system is older, deadline differs
// from it in what has changed since: -p and -f (9.6); a duration that is too small to be
// represented is a nanosecond and not "no limit" (9.7); signals that are ignored stay so,
// for the command too; all others that would end deadline are passed on; if deadline is
// killed, the command gets the signal of the limit (Linux); "-s 0 -v" prints 0; a message that
// cannot be written does not turn 124 into 125 (9.10).
//
// These differences stay:
//
//   - SIGPROF is not passed on, and RTMIN, that is 34, ends deadline on Linux: the Go
//     runtime does not deliver them. SIGPIPE is passed on where it is sent to deadline, not
//     where a write of deadline's own has caused it, and on Linux only.
//   - If a message cannot be written, -p and 137 are honoured nevertheless. A message that
//     nobody takes is lost after a second, and the signal that it announces goes out.
//   - "-k=5" is read as "-k 5".
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
