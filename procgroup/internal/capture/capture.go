// Package capture connects the standard streams of a command with the caller. It reads the
// output, keeps the last part of it, passes it on to the caller's writers and callback, and
// feeds the command from the caller's reader. None of these can block it forever or make it
// panic.
package capture

import (
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Unlimited is the Config.Max that keeps everything.
const Unlimited = math.MaxInt

// A Config describes the call to a Capture.
type Config struct {
	// Head and Max are how many bytes are kept of the beginning and of the end of each stream, and
	// of both together. If Max is Unlimited, the Head makes no difference.
	Head, Max int
	// OnePipe makes a single pipe for both streams. cmd.Stderr must then be nil or the same as
	// cmd.Stdout.
	OnePipe bool
	// Terminal, unless it is nil, is the size of the terminal that the command gets in place of pipes.
	Terminal *Size
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

// A Source makes a pipe of a simulation. read is read(2) for its reading end, without waiting.
type Source func() (r ReadEnd, w io.WriteCloser, read func(fd uintptr, b []byte) (int, error))

// A ReadEnd is the reading end of a pipe of a simulation. The reading goes through its raw connection.
type ReadEnd interface {
	io.ReadCloser
	syscall.Conn
}

// A Chunk is a piece of output; see procgroup.Chunk for its fields.
type Chunk struct {
	Stream  int // 0 is stdout, 1 stderr
	Data    []byte
	Skipped int64
	Last    bool
}

// A Capture handles the standard streams of one command. After New, call Discard if the command
// was not started; otherwise call Start, Drain and Finish in this order.
type Capture struct {
	config  Config
	to      [2]io.Writer      // the caller's writers
	in      *input            // nil if the command reads a file, or nothing
	w       [2]io.WriteCloser // the writing ends of the pipes
	start   start
	streams []stream // stdout and stderr, or both in one
	live    *live
	sinks   []*sink
	spill   *sink // nil if there is none
	stacks  *stacks

	terminal *os.File // the side of the command; nil without a terminal
	size     Size     // of the terminal; guarded by mu

	mu      sync.Mutex // guards the fields below and the rings
	order   order
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

// New replaces the standard streams of cmd with pipes, and keeps the caller's reader and writers.
// The command must not have been started yet.
//
// If cmd.Stdout and cmd.Stderr are the same writer, they share a pipe, as with os/exec: two
// pipes do not show in which order the command wrote to them.
func New(cmd *exec.Cmd, config Config) (_ *Capture, err error) {
	c := &Capture{
		config: config,
		to:     [2]io.Writer{cmd.Stdout, cmd.Stderr},
		done:   make(chan struct{}),
		giveUp: make(chan struct{}),
	}
	keyboard, _ := cmd.Stdin.(*Keyboard)
	if keyboard != nil {
		cmd.Stdin = keyboard.R
	}
	c.beginStart()
	defer func() {
		if err != nil {
			c.Discard()
		}
	}()
	if config.Max == Unlimited {
		c.config.Head = 0
	}
	c.order.headMax, c.order.max, c.last = c.config.Head, lookBack(config.Max), config.Begun
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
		s.id, s.ring.max = i, lookBack(config.Max)
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

// Discard closes the pipes if the command was not started.
func (c *Capture) Discard() {
	c.closeWriters()
	c.closeTerminal()
	c.endStart()
	c.closeReaders()
	if c.in != nil {
		c.in.close()
	}
}

// Start begins to read the output and to write the input. The command has been started and has
// the other ends of the pipes.
func (c *Capture) Start() {
	c.startConsumers()
	c.closeWriters()
	c.endStart()
	c.collectors.Add(len(c.streams))
	for i := range c.streams {
		go c.collect(&c.streams[i])
	}
	if c.in != nil {
		c.in.start()
	}
}

// startConsumers starts the goroutines that pass output on to the caller.
func (c *Capture) startConsumers() {
	if c.config.Output != nil {
		c.live = newLive(c.config.Output, c.config.Fail)
	}
	names := [...]string{"cmd.Stdout", "cmd.Stderr"}
	for i := range c.streams {
		s := &c.streams[i]
		s.sunk = make(chan struct{}, 2)
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

// lookBack returns the size of a ring for the last most bytes: one more, because the byte before them
// shows whether they begin a line.
func lookBack(most int) int {
	if most == 0 || most == Unlimited {
		return most
	}
	return most + 1
}

// same reports whether two writers are equal. Writers whose type is not comparable are not.
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

// closeTerminal closes the command's side of the terminal. A child that is being started for another command may have a
// copy until it executes that; see starts.
func (c *Capture) closeTerminal() {
	if c.terminal == nil {
		return
	}
	c.terminal.Close()
	c.beganStarts()
}

func (c *Capture) closeReaders() {
	for i := range c.streams {
		if p := c.streams[i].pipe; p != nil {
			p.close()
		}
	}
}
