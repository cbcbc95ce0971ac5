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

// A Capture handles the standard streams of one command. After Connect, call Discard if the command
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
	spill   *sink // nil without Config.Spill
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

	lineMu     sync.Mutex
	lineStream *stream // the stream of the newest output; guarded by lineMu

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

// Size returns the size of the terminal, or the zero Size if there is no terminal.
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

// maxStacks is how many bytes of stacks are kept.
const maxStacks = 256 << 10

// stacks has the stacks that programs have written so far. Capture.mu guards it.
type stacks struct {
	kept         [2][]byte // by stream
	total, lines int64
}
