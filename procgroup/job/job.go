package job

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup"
	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
)

// A Job is a command that was started by a [Set]. Its methods are safe for concurrent use, even after the Set
// has dropped it.
type Job struct {
	// ID is the number of the job in its Set, from 1. No other job of the Set ever has it.
	ID int
	// Args are the arguments of the command, beginning with its name.
	Args []string
	// Started is when the job was started.
	Started time.Time

	set     *Set
	log     *transcript.Log
	input   *input
	cancel  context.CancelCauseFunc
	process *procgroup.Process

	// These are written before the log says that the job has ended, and read after that.
	result *procgroup.Result
	err    error
	done   chan struct{} // closed when the log says so
}

// supervise waits for the end of the command. Nothing can write to the log any more when the result
// is complete, so a wait that finds the end has seen all output.
func (j *Job) supervise() {
	defer j.set.ending.Done()
	j.result, j.err = j.process.Wait()
	j.cancel(nil)
	j.input.close()
	j.set.ended(j)
	j.log.End()
	close(j.done)
}

// Interrupt asks the command to interrupt its work, as Ctrl-C does in a terminal, and returns the status of the
// job. If the job has ended, it only returns the status. The command decides whether an interrupt ends it. In the
// terminal of [procgroup.Terminal], Ctrl-C is typed. The errors are those of [procgroup.Process.Interrupt], except
// that the end of the job is not an error.
func (j *Job) Interrupt() (Status, error) { return j.statusAfter(j.process.Interrupt()) }

// Signal sends sig once to each process of the command, and returns the status of the job. If the job has ended, it
// only returns the status. The limits keep running, and the Reason of a command that dies of the signal is
// procgroup.Exited. The errors are those of [procgroup.Process.Signal], except that the end of the job is not an
// error.
func (j *Job) Signal(sig os.Signal) (Status, error) { return j.statusAfter(j.process.Signal(sig)) }

// statusAfter returns the status, and the error of a signal unless it says that the job had ended.
func (j *Job) statusAfter(err error) (Status, error) {
	j.touch()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return j.Status(), err
}

// Stop stops the job and returns at once; use [Job.Wait] to wait for the end. The processes of the
// command are asked to end, and are killed after its AbortDelay; see [Set.Start]. The Reason of the Result is then
// procgroup.Aborted, and the error matches [timeout.ErrAborted]. If the job has ended, Stop does nothing.
func (j *Job) Stop() { j.cancel(errStopped) }

var errStopped = errors.New("job: stopped")
