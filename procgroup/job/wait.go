package job

import (
	"context"
	"regexp"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/job/internal/transcript"
)

// An Until selects the events that end a wait. The end of the command and of the caller's context always end a wait;
// with the zero Until only these do.
type Until struct {
	// From is the position after which output is new: the Next of the last [Piece], or 0.
	From int64
	// Output ends the wait as soon as there is new output.
	Output bool
	// Silence ends the wait when the command has written no output for that long, counted from the beginning of the
	// wait or from the last output, whichever is later. 0 or less means that silence does not end the wait.
	Silence time.Duration
	// Match ends the wait when the pattern matches a line of the new output as [Job.ReadText] returns it, without the
	// line end. The unfinished last line is searched, too, as far as it is new and not empty. At least the last 32 KiB
	// of a long unfinished line are searched. Output that is dropped before it can be searched is not searched. A
	// search may take long, because its time grows with the size of the output times the size of the pattern; the end
	// of the caller's context ends it. Use [Compile] for a pattern from outside the program.
	Match *regexp.Regexp
	// Input ends the wait when the command certainly waits for input.
	Input bool
	// Ready ends the wait when the command has sent READY=1 to the socket of [procgroup.Notify].
	Ready bool
}

// A Wake names the event that ended a wait.
type Wake string

const (
	// WakeEnd means that the command has ended: [Job.Status] returns the result.
	WakeEnd Wake = "end"
	// WakeOutput means that there is new output.
	WakeOutput Wake = "output"
	// WakeSilence means that there was no output for Until.Silence.
	WakeSilence Wake = "silence"
	// WakeMatch means that a line of the new output matches the pattern.
	WakeMatch Wake = "match"
	// WakeInput means that the command certainly waits for input: [Job.Status] returns the prompt.
	WakeInput Wake = "input"
	// WakeReady means that the command has sent READY=1.
	WakeReady Wake = "ready"
	// WakeCaller means that the context of the call is done.
	WakeCaller Wake = "caller"
)

// Wait waits until the command has ended, an event that until selects has happened, or ctx is done, and returns which
// of these came first. If several of them have happened, Wait returns the first in this order: a match, new output,
// READY=1, the end, a wait for input, the end of ctx, silence. So a wait that selects Match, Output or Ready reports
// these before the end that followed. If ctx ends the search for a match, Wait returns WakeOutput or WakeCaller.
//
// If an event has happened already, Wait returns at once, even if ctx is done. With a ctx that is done it searches for
// a match for at most 100 ms.
//
// If ctx belongs to an execution, output of the job during the wait is a heartbeat for it, so that a tool that waits
// for a command that prints is not idle.
func (j *Job) Wait(ctx context.Context, until Until) Wake {
	defer j.touch()
	return Wake(j.log.Wait(ctx, transcript.Until(until)))
}
