package job

import (
	"github.com/tooldeadline/tooldeadline/procgroup"
)

// A State is the state of a job, in words.
type State string

const (
	// Running means that the command runs, and is not known to wait for input.
	Running State = "running"
	// Waiting means that the command waits for input, certainly or probably.
	Waiting State = "waiting for input"
	// Ended means that the command has ended.
	Ended State = "ended"
	// LeftBehind means that the command has ended, and that some of its processes run on, because they could not be
	// killed, or because Orphans of procgroup.Stop keeps them.
	LeftBehind State = "ended, with processes left behind"
)

// A Status describes a job at one moment.
type Status struct {
	State State
	// Input describes the wait for input if State is Waiting, and is zero otherwise.
	Input procgroup.InputWait
	// Notices contains the messages that the command has sent; see [procgroup.Notify].
	Notices procgroup.Notices
	// Result is the result of the command, and Err the error of [procgroup.Process.Wait]. Both are nil until the
	// command has ended. If State is LeftBehind, Survivors and Kept of the Result list the processes.
	Result *procgroup.Result
	Err    error
}

// Status returns the status of the job. It does not start the retention again; see [Set.Retention].
//
// Output, a Write or a CloseInput make a command that was waiting for input count as running. It counts as waiting
// again when it has been examined again, which takes about a second, and longer on a busy machine.
func (j *Job) Status() Status {
	if j.log.Ended() { // result and err may be read from now on
		s := Status{State: Ended, Notices: j.result.Notices, Result: j.result, Err: j.err}
		if len(j.result.Survivors)+len(j.result.Kept.Processes) > 0 {
			s.State = LeftBehind
		}
		return s
	}
	if w := j.process.Input(); w.Pid != 0 {
		return Status{State: Waiting, Input: w, Notices: j.process.Notices()}
	}
	return Status{State: Running, Notices: j.process.Notices()}
}
