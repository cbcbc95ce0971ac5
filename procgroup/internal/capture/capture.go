// Package capture connects the standard streams of a command with the caller. It reads the output, keeps a part of it,
// passes all of it on to the caller's writers and callback, and copies the caller's reader to the input of the command.
// A reader, writer or callback that blocks or panics does not block the package forever and does not crash the program.
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

// A Capture handles the standard streams of one command. After Connect, call Start, Drain and Finish in this order, or
// only Discard if the command was not started.
type Capture struct {
	config  Config
	to      [2]io.Writer      // the caller's writers
	in      *input            // nil if the command has no input, or reads the caller's file itself
	w       [2]io.WriteCloser // the writing ends of the pipes; nil with a terminal
	start   *start
	streams []stream // stdout and stderr, or a single stream for both
	live    *live
	sinks   []*sink
	spill   *sink // nil without Config.Spill
	stacks  *stacks

	terminal *os.File      // the command's side of the terminal; nil without a terminal
	size     terminal.Size // the size of the terminal; guarded by mu

	mu      sync.Mutex // guards the fields below until newestMu, and some fields of each stream
	record  *kept.Record
	last    time.Time     // time of the last output, or Config.Begun before the first
	over    bool          // there was more output than Config.Limit
	longest time.Duration // the longest silence until last
	open    int           // number of streams that have neither ended nor failed
	closing bool          // the pipes are being closed, which may make reads fail
	closed  bool          // output that is still read is dropped

	newestMu sync.Mutex // guards newest, and the tail and total of each stream
	newest   *stream    // the stream of the newest output; nil before the first

	done       chan struct{} // closed when all streams have ended or failed
	giveUp     chan struct{} // closed by Finish; collectors then stop waiting for sinks
	collectors sync.WaitGroup
}

// closeTerminal closes this process's copy of the command's side of the terminal, if there is one. A child that was
// forked for another command may still hold a copy; see starts.
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

// Resize changes the size of the terminal. The Capture must have one. The error matches os.ErrClosed once the terminal
// has been closed.
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

// shown returns the configuration of the screen on which the output is rendered. The caller holds c.mu.
func (c *Capture) shown() screen.Config {
	return screen.Config{Rows: int(c.size.Rows), Cols: int(c.size.Cols), Terminal: c.config.Terminal != nil}
}

// Interrupt types the interrupt character of the terminal, Ctrl-C unless the command has changed it, and reports
// whether it was written. The result is false if the command has disabled that character, if the write would have to
// wait, or if it fails. The Capture must have a terminal.
func (c *Capture) Interrupt() bool {
	t := terminal.NewTypist(c.streams[0].pipe.r, nil)
	if c.in != nil {
		t = c.in.typist
	}
	return t.Interrupt()
}

// maxStacks is the number of bytes of stack dumps that are kept of both streams together.
const maxStacks = 256 << 10

// stacks holds the stack dumps that programs have written so far. Capture.mu guards it.
type stacks struct {
	kept         [2][]byte // by stream
	total, lines int64     // bytes and line ends of all stack dumps, whether kept or not
}
