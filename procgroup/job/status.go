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
	// LeftBehind means that the command has ended, and that some of its processes run on: they could not be killed,
	// or Orphans of procgroup.Stop keeps them.
	LeftBehind State = "ended, with processes left behind"
)

// A Status says how a job stood at one moment.
type Status struct {
	// State is the state of the job.
	State State
	// Input says what the command waits for, if it is Waiting: whether that is certain, the
	// prompt, and whether it is a secret.
	Input procgroup.InputWait
	// Notices are what the command has said of itself; see [procgroup.Notify].
	Notices procgroup.Notices
	// Result is the result of the command, and Err the error of [procgroup.Process.Wait]. Both are nil until the command
	// has ended. Processes that are LeftBehind are in Survivors and Kept of the Result.
	Result *procgroup.Result
	Err    error
}

// Status returns the status of the job. It does not count as use of the job; see [Set.Retention].
//
// A command that waited for input before counts as running after output, a Write or a CloseInput, until it was
// examined and found to wait again. That takes about a second, and longer on a busy machine.
func (j *Job) Status() Status {
	if j.log.Ended() { // the rest is read after that
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
