package capture

import (
	"io"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// A Config configures a Capture.
type Config struct {
	// The Capture keeps the first Head and the last Max bytes of each stream, and as much of the combined output. If
	// Max is kept.Unlimited, it keeps everything, and Head has no effect.
	Head, Max int
	// OnePipe makes both streams share a pipe. cmd.Stderr must then be nil or equal to cmd.Stdout.
	OnePipe bool
	// Terminal is the size of the terminal that the command gets in place of pipes. The default, nil, means pipes.
	Terminal *terminal.Size
	// Begun is the time at which the first silence begins.
	Begun time.Time
	// Beat is called for each chunk of output before the chunk is recorded and passed on. Two goroutines may call it at
	// the same time.
	Beat func()
	// Fed is called each time input has been written to the command, and when the input has ended.
	Fed func()
	// Refused returns the error for a byte b of the input, at offset at, that the terminal would not pass on to the
	// command. If maxLine is not 0, b would make its line longer than maxLine bytes. Otherwise does describes what the
	// terminal does on b, such as "it ends the input". Refused is also called if a byte of the input has stopped the
	// output of the command; then at is the length of the input, or 0 if that is unknown.
	Refused func(at int64, b byte, maxLine int, does string) error
	// Output, unless it is nil, is called with the output as it arrives, on a separate goroutine.
	Output func(Chunk)
	// Limit is the number of bytes that both streams together may have; 0 means no limit. Exceeded is called once, when
	// there are more, before that stream is read again. It must not wait for the Capture.
	Limit    int64
	Exceeded func()
	// Spill, unless it is nil, gets the output of both streams in the order in which it is read. After an error it gets
	// no more, and the command runs on. It must not panic.
	Spill io.Writer
	// Fail is called with the error if the caller's reader, a writer or Output panics or calls [runtime.Goexit]; see
	// Guard. It must not block.
	Fail func(error)
	// Pipe makes the pipes of a simulation. The default, nil, means the pipes of the system. Unix only.
	Pipe Source
}

// A Chunk is a piece of output; see procgroup.Chunk for its fields.
type Chunk struct {
	Stderr  bool
	Data    []byte
	Skipped int64
	Last    bool
}
