// Deadline runs a command with a time limit, like timeout(1) of GNU coreutils. With --idle, it also stops a command
// that has not written anything for some time.
//
//	deadline [OPTION]... DURATION COMMAND [ARG]...
//	deadline --idle 30s -k 5s 1h make -j8
//
// Options, durations, messages and exit codes are those of GNU timeout, so deadline can replace that program, even
// under its name. The differences are listed below.
//
// # How it works
//
// Both limits belong to one execution of package timeout; see stages.go. The executed function waits for the command,
// and the command's output is its heartbeat. After a limit has fired, code outside the execution sends the signal and
// perhaps a kill.
//
// The command runs in the process group of deadline, which first creates its own, as GNU timeout does. Ctrl-C and
// Ctrl-Z at a terminal then reach both, a shell's pipeline stays one job, and the command may read from the terminal.
// Package procgroup puts each command into a new group, which is right for a server and wrong here, so it is used only
// on systems without such process groups; see supervise_other.go.
//
// Output that goes through deadline is forwarded even after a limit: for the time of -k, or 5 s, and in any case for a
// second after the command has ended. Output that nobody reads in that time is lost, and deadline reports the number of
// lost bytes. The SIGKILL to the process group, which ends deadline too, is sent only after that time.
//
// Time during which deadline itself is stopped, as between Ctrl-Z and fg, does not count for --idle. It does count for
// DURATION, as with GNU timeout.
//
// With --stacks, programs that are known to write their stacks on a signal get it 0.2 s before the signal of the limit;
// see stacks.go.
//
// # What differs from GNU timeout
//
// The model is GNU coreutils 9.11. An older version lacks the changes made since: -p and -f (9.6); a duration too small
// to be represented is a nanosecond and not "no limit" (9.7); ignored signals stay ignored, for the command too; all
// other signals that would end deadline are passed on; if deadline is killed, the command gets the signal of the limit
// (Linux); "-s 0 -v" prints 0; a message that cannot be written does not turn 124 into 125 (9.10).
//
// These differences stay:
//
//   - SIGPROF is not passed on, and on Linux RTMIN (34) ends deadline: the Go runtime does not deliver them. SIGPIPE is
//     passed on, on Linux only, if it is sent to deadline, but not if a write of deadline causes it.
//   - If a message cannot be written, -p and 137 are honoured nevertheless. A message that nobody reads is dropped
//     after a second, and the signal that it announces is sent.
//   - "-k=5" is read as "-k 5".
//   - The longest time is 292 years.
//   - Messages are in English, with the quotation marks of the locale.
//   - Built without cgo, deadline does not know everything that it inherited: the command gets /dev/null for standard
//     streams that were closed, and of the signals that were ignored only SIGHUP, SIGINT and those of job control stay
//     ignored. See inherited_cgo.go.
package main

import "os"

func main() {
	e := run(os.Args)
	if e.signal != 0 {
		raise(e.signal)
	}
	os.Exit(e.code)
}

// run runs the program with the given arguments, which include its name, and returns how it must end.
func run(args []string) ending {
	r := newReporter(args[0])
	opts, err := parse(args[1:])
	if err != nil {
		return ending{code: r.refuse(err)}
	}
	if opts.beat {
		return ending{code: sendBeat(opts, r)}
	}
	e := supervise(opts, r)
	if r.hasFailed() && !e.limited {
		e.code = exitFailed
	}
	return e
}
