package job

import (
	"errors"
	"os"
)

// Interrupt asks the command to interrupt its work, as Ctrl-C does in a terminal, and returns the status of the job. If
// the job has ended, it only returns the status. The command decides whether an interrupt ends it. In the terminal of
// [procgroup.Terminal], Ctrl-C is typed. The errors are those of [procgroup.Process.Interrupt], except that the end of
// the job is not an error.
func (j *Job) Interrupt() (Status, error) { return j.statusAfter(j.process.Interrupt()) }

// Signal sends sig once to each process of the command, and returns the status of the job. If the job has ended, it
// only returns the status. The limits keep running, and the Reason of a command that dies of the signal is
// procgroup.Exited. The errors are those of [procgroup.Process.Signal], except that the end of the job is not an error.
func (j *Job) Signal(sig os.Signal) (Status, error) { return j.statusAfter(j.process.Signal(sig)) }

// statusAfter returns the status and err, the error of a signal. It returns a nil error if the job had ended.
func (j *Job) statusAfter(err error) (Status, error) {
	j.touch()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return j.Status(), err
}

// Stop stops the job and returns at once; use [Job.Wait] to wait for the end. The processes of the command are asked to
// end, and are killed after its AbortDelay; see [Set.Start]. The Reason of the Result is then procgroup.Aborted, and
// Err of the Status matches [timeout.ErrAborted]. If the job has ended, Stop does nothing.
func (j *Job) Stop() { j.cancel(errStopped) }

var errStopped = errors.New("job: stopped")
