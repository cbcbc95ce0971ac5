// Package capture connects the standard streams of a command with the caller. It reads the
// output, keeps the last part of it, passes it on to the caller's writers and callback, and
// feeds the command from the caller's reader. None of these can block it forever or make it
// panic.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
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
	// Output, unless it is nil, is called with the output as it arrives.
	Output func(Chunk)
	// Limit, unless it is 0, is how many bytes both streams together may have. Exceeded is called
	// once when there were more, before anything else is read. It must not wait for the Capture.
	Limit    int64
	Exceeded func()
	// Spill, unless it is nil, gets the output of both streams in the order in which it is read. Its
	// error ends nothing. It must not panic.
	Spill io.Writer
	// Fail is called with the error if the caller's reader, a writer or the callback has panicked
	// or ended its goroutine. It must not block.
	Fail func(error)
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
	to      [2]io.Writer // the caller's writers
	in      *input       // nil if the command reads a file, or nothing
	w       [2]*os.File  // the writing ends of the pipes
	start   start
	streams []stream // stdout and stderr, or both in one
	live    *live
	sinks   []*sink
	spill   *sink // nil if there is none

	terminal *os.File // the side of the command; nil without a terminal

	mu      sync.Mutex // guards the fields below and the rings
	order   order
	last    time.Time     // of the last output
	over    bool          // there was more output than Config.Limit
	newest  *stream       // the one that it came from; nil before the first
	longest time.Duration // the longest silence until last
	open    int           // number of streams that have not ended
	closing bool          // the pipes are being closed, which may make reads fail
	closed  bool          // no more output is accepted

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
		return c, nil
	}
	together := cmd.Stderr != nil && same(cmd.Stdout, cmd.Stderr)
	if config.OnePipe && cmd.Stderr != nil && !together {
		return nil, &timeout.ConfigError{Key: "WithOnePipe", Value: "true", Accepted: "cmd.Stderr to be nil or the same as cmd.Stdout"}
	}
	c.open = 2
	if config.OnePipe || together {
		c.open = 1
	}
	c.streams = make([]stream, c.open)
	for i := range c.streams {
		s := &c.streams[i]
		s.id, s.ring.max = i, lookBack(config.Max)
		if s.pipe, c.w[i], err = newPipe(); err != nil {
			return nil, err
		}
	}
	if _, file := cmd.Stdin.(*os.File); cmd.Stdin != nil && !file {
		if c.in, err = newInput(cmd.Stdin, config.Fail); err != nil {
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

// lookBack returns how many bytes a ring has if the last most are to be kept: one more, because that
// shows whether they begin with a line.
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

// closeTerminal closes the side of the command, which a command that is being started may hold until it runs.
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
			p.r.Close()
		}
	}
}

// Drain is called once the command has ended. It waits for both streams to end, but not beyond
// until. It reads the available output, and reports whether a stream has not ended because
// another process still holds it.
//
// The pipe decides that, not the time since the last read: on a busy machine the collectors
// may not have run since the command wrote, or may be waiting for a writer. The first look is
// immediate, because nothing holds the streams if no process has outlived the command.
//
// A command that is being started may also hold a stream for a moment; see starts. Drain waits
// for such commands, but not beyond latest, before it reports that a stream is held.
func (c *Capture) Drain(until, latest time.Time) (held bool) {
	c.closeTerminal()
	for !c.rest() {
		if !time.Now().Before(until) {
			c.awaitStarts(latest)
			return !c.rest()
		}
		next := until
		if restEvery > 0 {
			next = time.Now().Add(min(restEvery, time.Until(until)))
		}
		if wait(c.done, next) {
			break
		}
	}
	return false
}

// rest reads the available output of all streams, and reports whether all of them have ended.
func (c *Capture) rest() (ended bool) {
	ended = true
	for i := range c.streams {
		ended = c.readRest(&c.streams[i]) && ended
	}
	return ended
}

// wait waits for done, but not beyond until, and reports whether done was closed.
func wait(done <-chan struct{}, until time.Time) bool {
	select {
	case <-done:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// LongestSilence returns the longest time without output between Config.Begun and end.
func (c *Capture) LongestSilence(end time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.longest, end.Sub(c.last))
}

// closeTime is how long a goroutine that has nothing left to wait for may take to end.
const closeTime = 50 * time.Millisecond

// An End describes how a capture ended.
type End struct {
	// Held reports that another process still held a stream, and may have written to it after it
	// was read for the last time.
	Held bool
	// Unwritten is the number of bytes that the caller's writers did not get, and Skipped the
	// number of bytes that the callback did not get.
	Unwritten, Skipped int64
	// Err is the error of reading the output, or of the caller's reader and writers. Callback is
	// the error of the callback.
	Err, Callback error
	// Spill is why Config.Spill did not get all of the output.
	Spill error
}

// Finish reads the rest of the output and closes the streams. It waits for the caller's writers to
// take the rest, until written or until ctx is done, and for the caller's reader and callback to
// return, until returned.
func (c *Capture) Finish(ctx context.Context, written, returned time.Time) End {
	end := End{Held: !c.rest()}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.closeReaders()
	close(c.giveUp)
	left := make(chan struct{})
	go func() {
		defer close(left)
		c.collectors.Wait()
	}()
	wait(left, time.Now().Add(closeTime)) // collectors remain if the system cannot interrupt a read
	var errs []error
	c.mu.Lock()
	c.closed = true
	for i := range c.streams {
		s := &c.streams[i]
		if s.err != nil {
			errs = append(errs, fmt.Errorf("procgroup: reading the command's output: %w", s.err))
		}
		if !s.ended {
			c.deliver(s, nil, true)
		}
	}
	c.mu.Unlock()
	if c.live != nil {
		c.live.close()
	}
	ctx, cancel := context.WithDeadline(ctx, written)
	defer cancel()
	all := c.sinks
	if c.spill != nil {
		all = append(all, c.spill)
	}
	for _, s := range all {
		s.end()
	}
	for _, s := range all {
		select {
		case <-s.done:
		case <-ctx.Done():
		}
	}
	for _, s := range c.sinks {
		n, err := s.finish()
		end.Unwritten += n
		errs = append(errs, err)
	}
	if c.spill != nil {
		_, end.Spill = c.spill.finish()
	}
	if c.in != nil {
		errs = append(errs, c.in.finish(returned))
	}
	if c.live != nil {
		end.Skipped, end.Callback = c.live.finish(returned)
	}
	end.Err = errors.Join(errs...)
	return end
}

// Kept returns the output that was kept. Call it after Finish. stopped tells it that the command
// did not end by itself.
func (c *Capture) Kept(stopped bool) (stdout, stderr, combined Kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var heads, tails [2][]byte
	var open [2]bool
	var kept [2]Kept
	var lines int64
	for i := range c.streams {
		s := &c.streams[i]
		heads[i], tails[i] = s.head, s.ring.bytes()
		k := keep(int64(len(s.head))+s.ring.total, s.lines, s.head, tails[i], c.config.Max)
		if k.Dropped == 0 {
			tails[i] = k.Bytes() // the tail of both may begin in the head of one
		}
		if open[i] = stopped || !s.ended || s.hungUp; open[i] {
			k.cut = Unfinished(k.Bytes())
		}
		kept[i] = k
		lines += s.lines
	}
	order := &c.order
	for _, k := range kept {
		if k.Total == order.total {
			return kept[0], kept[1], k // all of it is from this stream
		}
	}
	cut := order.flush(open)
	join := func() Kept {
		head, tail := order.merge(heads, tails)
		k := keep(order.total, lines, head, tail, c.config.Max)
		k.cut = cut
		return k
	}
	if int64(order.head.n)+int64(order.tail.n) < order.total || order.tail.n > c.config.Max {
		return kept[0], kept[1], join()
	}
	// There is no need to put it together before somebody wants it.
	return kept[0], kept[1], Kept{Total: order.total, data: sync.OnceValue(func() []byte { return join().Bytes() }), cut: cut}
}
