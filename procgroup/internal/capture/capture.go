// Package capture connects the standard streams of a command with the caller. It reads the
// output, keeps the last part of it, passes it on to the caller's writers and callback, and
// feeds the command from the caller's reader. None of these can block it forever or make it
// panic.
package capture

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
)

// A Config describes the call to a Capture.
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
	// Pipe makes the pipes, in simulated time. nil means those of the system. Unix only.
	Pipe Source
}

// A Capture handles the standard streams of one command. After New, call Discard if the command
// was not started; otherwise call Start, Drain and Finish in this order.
type Capture struct {
	config  Config
	to      [2]io.Writer      // the caller's writers
	in      *input            // nil if the command reads a file, or nothing
	w       [2]io.WriteCloser // the writing ends of the pipes
	start   *start
	streams []stream // stdout and stderr, or both in one
	live    *live
	sinks   []*sink
	spill   *sink // nil if there is none
	stacks  *stacks

	terminal *os.File      // the side of the command; nil without a terminal
	size     terminal.Size // of the terminal; guarded by mu

	mu      sync.Mutex // guards the fields below, and those of the streams
	record  *kept.Record
	last    time.Time     // of the last output
	over    bool          // there was more output than Config.Limit
	newest  *stream       // the stream of the last output; nil before the first
	longest time.Duration // the longest silence until last
	open    int           // number of streams that have not ended
	closing bool          // the pipes are being closed, which may make reads fail
	closed  bool          // no more output is accepted

	saying  sync.Mutex
	speaker *stream // the stream of the newest output; guarded by saying

	done       chan struct{} // closed when both streams have ended
	giveUp     chan struct{} // closed when collectors need not wait for sinks any more
	collectors sync.WaitGroup
}

// closeTerminal closes the command's side of the terminal. A child that is being started for another command may have a
// copy until it executes that; see starts.
func (c *Capture) closeTerminal() {
	if c.terminal == nil {
		return
	}
	c.terminal.Close()
	c.start.closed()
}

func (c *Capture) closeReaders() {
	for i := range c.streams {
		if p := c.streams[i].pipe; p != nil {
			p.close()
		}
	}
}

// Resize changes the size of the terminal, which the command must have. The error matches os.ErrClosed once the
// terminal has been closed.
func (c *Capture) Resize(size terminal.Size) error {
	err := terminal.Resize(c.streams[0].pipe.r, size)
	if err == nil {
		c.mu.Lock()
		c.size = size
		c.mu.Unlock()
	}
	return err
}

// Size returns the size of the terminal, which is zero without one.
func (c *Capture) Size() terminal.Size {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// shown returns the screen on which a person would have read the output. The caller holds c.mu.
func (c *Capture) shown() screen.Config {
	return screen.Config{Rows: int(c.size.Rows), Cols: int(c.size.Cols), Terminal: c.config.Terminal != nil}
}

// Interrupt types the byte that interrupts, which is Ctrl-C unless the command has chosen another. It reports false if
// the terminal has none, or takes nothing now.
func (c *Capture) Interrupt() bool {
	t := terminal.NewTypist(c.streams[0].pipe.r, nil)
	if c.in != nil {
		t = c.in.typist
	}
	return t.Interrupt()
}
