package capture

import (
	"io"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// A Config says what a Capture does.
type Config struct {
	// Head and Max are how many bytes are kept of the beginning and of the end of each stream, and
	// of both together. If Max is kept.Unlimited, the Head makes no difference.
	Head, Max int
	// OnePipe makes a single pipe for both streams. cmd.Stderr must then be nil or the same as
	// cmd.Stdout.
	OnePipe bool
	// Terminal, unless it is nil, is the size of the terminal that the command gets in place of pipes.
	Terminal *terminal.Size
	// Begun is the time at which the call began.
	Begun time.Time
	// Beat is called for each chunk of output before the chunk is passed on.
	Beat func()
	// Fed is called after input was written to the command.
	Fed func()
	// Refused makes the error for the byte b of the input, which comes after at others and which the terminal would
	// not pass on: because the line would be longer than maxLine bytes, or, if maxLine is 0, because the terminal
	// does with b what does says.
	Refused func(at int64, b byte, maxLine int, does string) error
	// Output, unless it is nil, is called with the output as it arrives.
	Output func(Chunk)
	// Limit, unless it is 0, is how many bytes may come on both streams together. Exceeded is called once
	// if more come, before anything else is read. It must not wait for the Capture.
	Limit    int64
	Exceeded func()
	// Spill, unless it is nil, gets the output of both streams in the order in which it is read. If it
	// returns an error, it gets no more, and the command runs on. It must not panic.
	Spill io.Writer
	// Fail is called with the error if the caller's reader, a writer or the callback has panicked
	// or ended its goroutine. It must not block.
	Fail func(error)
	// Pipe makes the pipes, in simulated time. nil means the pipes of the system. Unix only.
	Pipe Source
}
