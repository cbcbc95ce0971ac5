package capture

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/patient"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/screen"
	"github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Size is the size of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }

// The bytes that, typed at a terminal, interrupt its foreground processes and end the input.
const (
	interruptByte = 0x03
	endByte       = 0x04
)

// newTerminal makes the terminal of cmd, and keeps the caller's reader and writers.
//
// This process keeps the side of the command open until the command has ended. Otherwise the output would end for good
// when a command closes its standard streams, although it may open /dev/tty again.
func (c *Capture) newTerminal(cmd *exec.Cmd) (err error) {
	if cmd.Stderr != nil && !same(cmd.Stdout, cmd.Stderr) {
		return &timeout.ConfigError{Key: "Terminal", Value: c.config.Terminal.String(), Accepted: "cmd.Stderr to be nil or the same as cmd.Stdout"}
	}
	c.open, c.streams, c.size = 1, make([]stream, 1), *c.config.Terminal
	s := &c.streams[0]
	s.ring.max = lookBack(c.config.Max)
	if s.pipe, c.terminal, err = newTerminal(*c.config.Terminal); err != nil {
		return err
	}
	if cmd.Stdin != nil {
		if c.in, err = newTyping(cmd.Stdin, s.pipe.r, c.config); err != nil {
			return err
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.terminal, c.terminal, c.terminal
	return nil
}

// newTyping returns an input that writes to a terminal. A file is duplicated: if it is that of [exec.Cmd.StdinPipe],
// os/exec closes it as soon as the command is started.
func newTyping(from io.Reader, master *os.File, config Config) (*input, error) {
	in := &input{w: master, from: from, fail: config.Fail, fed: config.Fed, typist: &typist{w: master, refused: config.Refused}, over: make(chan struct{}), done: make(chan struct{})}
	if f, file := from.(*os.File); file {
		made := new(struct { // filled in by a call that may outlast Within
			file *os.File
			err  error
		})
		err := patient.ErrNoAnswer
		// If f is non-blocking, the runtime polls the duplicate.
		if patient.Within(patient.Patience, f, func() { made.file, made.err = duplicate(f) }) {
			err = made.err
		}
		if err != nil {
			return nil, fmt.Errorf("procgroup: cmd.Stdin: %w", err)
		}
		in.copied = stdio.New(made.file)
		in.from = in.copied
	}
	return in, nil
}

// Resize changes the size of the terminal, which the command must have. The error matches os.ErrClosed once the
// terminal has been closed.
func (c *Capture) Resize(size Size) error {
	err := resize(c.streams[0].pipe.r, size)
	if err == nil {
		c.mu.Lock()
		c.size = size
		c.mu.Unlock()
	}
	return err
}

// Size returns the size of the terminal, which is zero without one.
func (c *Capture) Size() Size {
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
	t := &typist{w: c.streams[0].pipe.r}
	if c.in != nil {
		t = c.in.typist
	}
	return t.interrupt()
}
