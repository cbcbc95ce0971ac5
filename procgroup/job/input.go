package job

import (
	"context"
	"errors"
	"time"
)

// endTime is the time that a Write waits for the end of the command, if no process has the input open any more: the end
// is the usual reason.
const endTime = time.Second

// Write writes p to the standard input of the command. It returns the number of bytes that were written, and the status
// of the job. Concurrent Writes run one after the other.
//
// If the job has ended, or ends before all of p is written, the State of the status shows it, and the error is nil.
// Otherwise the error is not nil if n < len(p): it is the cause of ctx if ctx is done, and matches [io.ErrClosedPipe]
// if the input was closed. If the command has closed its input but not ended, the Write that finds this first waits for
// its end, for at most a second.
//
// With a [procgroup.Terminal], p is typed up to the first byte that the terminal would not pass on, because the line is
// too long, or because the terminal acts on the byte, as on Ctrl-C. The error is then a [*procgroup.TypingError]. Use
// Type, Interrupt and CloseInput for bytes on which the terminal acts.
//
// A pipe buffers the input until the command reads it, so writing blocks only while the pipe is full. On Windows, n is
// 0 if ctx ends a write that has begun, and the write goes on.
func (j *Job) Write(ctx context.Context, p []byte) (n int, s Status, err error) {
	return j.write(ctx, p, false)
}

// Type writes keys as Write does, but also types bytes on which the terminal acts, such as 3 for Ctrl-C. Like Write, it
// returns an error at a byte that stops the output (Ctrl-S), unless a later key restarts the output. Without a
// terminal, Type is the same as Write.
func (j *Job) Type(ctx context.Context, keys []byte) (n int, s Status, err error) {
	return j.write(ctx, keys, true)
}

func (j *Job) write(ctx context.Context, p []byte, keys bool) (n int, s Status, err error) {
	j.touch()
	n, err = j.input.write(ctx, p, keys)
	if n > 0 {
		j.process.Answered()
	}
	if errors.Is(err, errInputClosed) && !j.input.shut.Load() {
		// No process has the input open: the command has ended, as a rule, or has closed its input.
		wait := time.NewTimer(endTime)
		defer wait.Stop()
		select { // the end of the job wins: see below
		case <-j.done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-wait.C:
			j.CloseInput()
		}
	}
	if j.log.Ended() {
		err = nil
	}
	return n, j.Status(), err
}

// CloseInput closes the standard input of the command. The command can still read what was written before, and then
// finds the end of the input. The error of a Write in progress matches [io.ErrClosedPipe]. Call CloseInput right after
// Start for a command that should find no input.
func (j *Job) CloseInput() {
	j.input.shut.Store(true)
	j.input.close()
	j.process.Answered()
}
