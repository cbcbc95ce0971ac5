package capture

import (
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/tooldeadline/tooldeadline/procgroup/internal/kept"
	"github.com/tooldeadline/tooldeadline/procgroup/internal/terminal"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Connect replaces the standard streams of cmd, which must not have been started, with pipes or with a terminal. The
// Capture reads from and writes to the reader and writers that cmd had. With pipes, a cmd.Stdin that is nil or an
// *os.File stays in place.
//
// If cmd.Stdout and cmd.Stderr are the same writer, they share a pipe, as with os/exec: two pipes do not show in which
// order the command wrote to them. The error is a *timeout.ConfigError if Config requires one stream and the writers
// differ. After an error nothing stays open.
func Connect(cmd *exec.Cmd, config Config) (_ *Capture, err error) {
	c := &Capture{
		config: config,
		to:     [2]io.Writer{cmd.Stdout, cmd.Stderr},
		record: kept.NewRecord(config.Head, config.Max),
		last:   config.Begun,
		done:   make(chan struct{}),
		giveUp: make(chan struct{}),
	}
	keyboard, _ := cmd.Stdin.(*Keyboard)
	if keyboard != nil {
		cmd.Stdin = keyboard.R
	}
	if config.Pipe == nil {
		c.start = beginStart()
	}
	defer func() {
		if err != nil {
			c.Discard()
		}
	}()
	if config.Terminal != nil {
		if err := c.newTerminal(cmd); err != nil {
			return nil, err
		}
		if keyboard != nil {
			keyboard.typist, keyboard.size = c.in.typist, c.Size
		}
		return c, nil
	}
	together := cmd.Stderr != nil && same(cmd.Stdout, cmd.Stderr)
	if config.OnePipe && cmd.Stderr != nil && !together {
		return nil, &timeout.ConfigError{Key: "Capture.OnePipe", Value: "true", Accepted: "cmd.Stderr to be nil or the same as cmd.Stdout"}
	}
	c.open = 2
	if config.OnePipe || together {
		c.open = 1
	}
	c.streams = make([]stream, c.open)
	for i := range c.streams {
		s := &c.streams[i]
		s.id = i
		if config.Pipe != nil {
			s.pipe, c.w[i], err = newPipeFrom(config.Pipe)
		} else {
			s.pipe, c.w[i], err = newPipe()
		}
		if err != nil {
			return nil, err
		}
	}
	if _, file := cmd.Stdin.(*os.File); cmd.Stdin != nil && !file {
		if c.in, err = newInput(cmd.Stdin, config); err != nil {
			return nil, err
		}
		cmd.Stdin = c.in.r
	}
	cmd.Stdout, cmd.Stderr = c.w[0], c.w[len(c.streams)-1]
	return c, nil
}

// terminalSize is an upper bound for the bytes of unread output in a terminal.
const terminalSize = 128 << 10

// newTerminal opens a terminal and makes it the standard streams of cmd.
//
// This process keeps the command's side open until Drain. Otherwise the output would end when the command closes its
// standard streams, although it may open /dev/tty again.
func (c *Capture) newTerminal(cmd *exec.Cmd) (err error) {
	if cmd.Stderr != nil && !same(cmd.Stdout, cmd.Stderr) {
		return &timeout.ConfigError{Key: "Terminal", Value: c.config.Terminal.String(), Accepted: "cmd.Stderr to be nil or the same as cmd.Stdout"}
	}
	c.open, c.streams, c.size = 1, make([]stream, 1), *c.config.Terminal
	s := &c.streams[0]
	var master *os.File
	if master, c.terminal, err = terminal.Open(c.size); err == nil {
		s.pipe, err = newPipeOf(master, terminalSize)
	}
	if err != nil {
		return fmt.Errorf("procgroup: Terminal: %w", err)
	}
	if cmd.Stdin != nil {
		if c.in, err = newTyping(cmd.Stdin, s.pipe.r, c.config); err != nil {
			return err
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.terminal, c.terminal, c.terminal
	return nil
}

// Discard closes the pipes or the terminal. It is for a command that was not started.
func (c *Capture) Discard() {
	c.closeWriters()
	c.closeTerminal()
	c.start.end()
	c.closeReaders()
	if c.in != nil {
		c.in.close()
	}
}

// Start starts the goroutines that read the output, pass it on and write the input. The command must have been started:
// Start closes this process's copies of its ends of the pipes.
func (c *Capture) Start() {
	c.startConsumers()
	c.closeWriters()
	c.start.end()
	c.collectors.Add(len(c.streams))
	for i := range c.streams {
		go c.collect(&c.streams[i])
	}
	if c.in != nil {
		c.in.start()
	}
}

// startConsumers starts the goroutines that call Config.Output and write to the caller's writers and to Config.Spill.
func (c *Capture) startConsumers() {
	if c.config.Output != nil {
		c.live = newLive(c.config.Output, c.config.Fail)
	}
	names := [...]string{"cmd.Stdout", "cmd.Stderr"}
	for i := range c.streams {
		s := &c.streams[i]
		s.written = make(chan struct{}, 2)
		if c.to[i] == nil {
			continue
		}
		s.sink = newSink(names[i], c.to[i], c.config.Fail)
		c.sinks = append(c.sinks, s.sink)
	}
	if c.config.Spill != nil {
		c.spill = newSink("the file", c.config.Spill, c.config.Fail)
	}
}

// same reports whether a and b are equal. Values of a type that is not comparable are never equal.
func same(a, b any) (equal bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (c *Capture) closeWriters() {
	for _, w := range c.w {
		if w != nil {
			w.Close()
		}
	}
}
