package job

import (
	"context"
	"regexp"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
)

// An Until says what ends a wait, besides the end of the command and of the caller's context. The zero Until adds
// nothing to these two.
type Until struct {
	// From is the position after which output is new: the Next of the last [Piece], or 0.
	From int64
	// Output ends the wait as soon as there is new output.
	Output bool
	// Silence ends the wait when the command has written nothing for that long, counted from the
	// beginning of the wait or from the last output, whichever is later. 0 or less means that
	// silence does not end the wait.
	Silence time.Duration
	// Match ends the wait when the pattern matches a line of the new output as [Job.ReadText] would
	// return it, without its end. The unfinished last line counts, too, as far as it is new and not
	// empty. At least the last 32 KiB of a long unfinished line are searched. Output that is dropped
	// before it can be searched is not searched. A search may take long, since its time grows with
	// the output times the pattern; the end of the caller's context ends it. Use [Compile] for a
	// pattern from outside the program.
	Match *regexp.Regexp
	// Input ends the wait when the command certainly waits for input.
	Input bool
	// Ready ends the wait when the command says READY=1 on the socket of [procgroup.Notify].
	Ready bool
}

// A Wake says why a wait is over, in a word.
type Wake string

const (
	// WakeEnd means that the command has ended: [Job.Status] has the result.
	WakeEnd Wake = "end"
	// WakeOutput means that there is new output.
	WakeOutput Wake = "output"
	// WakeSilence means that there was no output for the time that was asked for.
	WakeSilence Wake = "silence"
	// WakeMatch means that a line of the new output matches the pattern.
	WakeMatch Wake = "match"
	// WakeInput means that the command certainly waits for input: [Job.Status] has the prompt.
	WakeInput Wake = "input"
	// WakeReady means that the command has said READY=1.
	WakeReady Wake = "ready"
	// WakeCaller means that the context of the call is done.
	WakeCaller Wake = "caller"
)

// Wait waits until the command has ended, something else has happened that until names, or ctx is done, and reports
// which came first. If one of these has happened already, Wait returns at once, even if ctx is done; in that case
// it searches for a match for at most 100 ms. If several of these have happened, Wait reports the first of them in
// this order: a match, new output, READY=1, the end, a wait for input, the end of ctx, silence. So a wait that
// names Match, Output or Ready reports them before the end that followed.
//
// Output of the job during the wait is a heartbeat for the execution that ctx belongs to, if there is
// one: a tool that waits for a command that prints is not idle.
func (j *Job) Wait(ctx context.Context, until Until) Wake {
	defer j.touch()
	switch j.log.Wait(ctx, transcript.Until(until)) {
	case transcript.Match:
		return WakeMatch
	case transcript.Output:
		return WakeOutput
	case transcript.Ready:
		return WakeReady
	case transcript.Input:
		return WakeInput
	case transcript.Caller:
		return WakeCaller
	case transcript.Silence:
		return WakeSilence
	}
	return WakeEnd
}

// touch starts the retention of the job again, if the job has ended.
func (j *Job) touch() { j.set.jobs.Touch(j.ID) }
