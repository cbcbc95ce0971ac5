// Package capture is everything between a command's standard streams and the caller's: it
// reads the output and keeps the end of it, passes it on to writers and a callback of the
// caller's, and feeds the command from a reader of the caller's, none of which can hold
// it up for ever or bring it down.
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

// Unlimited as Config.Max keeps everything.
const Unlimited = math.MaxInt

// A Config is what a Capture knows of the call.
type Config struct {
	// Max is how many bytes are kept of each stream, and of both together.
	Max int
	// OnePipe makes one pipe of both streams, even if cmd.Stdout and cmd.Stderr differ.
	OnePipe bool
	// Begun is when the call began.
	Begun time.Time
	// Beat is called for each chunk of output, before anybody else sees it.
	Beat func()
	// Output, unless it is nil, gets the output as it comes.
	Output func(Chunk)
	// Fail is called when the caller's reader, writer or callback has panicked or ended
	// its goroutine, with that error. It must not wait.
	Fail func(error)
}

// A Chunk is a piece of output. Its fields are those of procgroup.Chunk.
type Chunk struct {
	Stream  int // 0 is stdout, 1 stderr
	Data    []byte
	Skipped int64
	Last    bool
}

// A Capture has the standard streams of one command. It is made by New, and then ended by
// Discard if the command was not started, and otherwise by Start, Drain and Finish.
type Capture struct {
	config  Config
	to      [2]io.Writer // the caller's
	in      *input       // nil: the command reads a file, or nothing
	w       [2]*os.File  // the command's ends of the pipes
	start   start
	streams []stream // stdout and stderr, or both in one
	live    *live
	sinks   []*sink

	mu      sync.Mutex // guards what follows, and the rings
	order   order
	last    time.Time     // when output came last
	longest time.Duration // silence until then
	open    int           // how many streams have not ended
	closing bool          // a read that fails may do so because of that
	closed  bool          // nothing more is taken

	done       chan struct{} // closed when both streams have ended
	giveUp     chan struct{} // closed when collectors need not wait for sinks any more
	collectors sync.WaitGroup
}

// New makes pipes the standard streams of cmd, which is to be started, and remembers what
// they were: what to read from and what to write to.
//
// Where cmd.Stdout and cmd.Stderr are the same writer there is one pipe, as with os/exec: two
// pipes do not tell in which order the command wrote to them.
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
	c.order.max, c.last = config.Max, config.Begun
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
		s.id, s.ring.max = i, config.Max
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

// Discard closes everything where the command was not started.
func (c *Capture) Discard() {
	c.closeWriters()
	c.endStart()
	c.closeReaders()
	if c.in != nil {
		c.in.close()
	}
}

// Start begins to read and to feed. The command has been started, and so has the other
// ends of the pipes.
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

// startConsumers starts what passes output on to the caller.
func (c *Capture) startConsumers() {
	if c.config.Output != nil {
		c.live = newLive(c.config.Output, c.config.Fail)
	}
	names := [...]string{"cmd.Stdout", "cmd.Stderr"}
	for i := range c.streams {
		if c.to[i] == nil {
			continue
		}
		s := &c.streams[i]
		s.sunk = make(chan struct{}, 1)
		s.sink = newSink(names[i], c.to[i], c.config.Fail)
		c.sinks = append(c.sinks, s.sink)
	}
}

// same compares writers. Those of a type that cannot be compared differ.
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

func (c *Capture) closeReaders() {
	for i := range c.streams {
		if p := c.streams[i].pipe; p != nil {
			p.r.Close()
		}
	}
}

// Drain is called once the command has ended. It waits until both streams have ended, or
// until the time has come. Then it reads what there is, and reports whether something
// still holds a stream: it has not ended.
//
// It is the pipe that says so, and not that nothing was read for a while: on a busy
// machine the collectors may not have run since the command wrote, and they may be
// waiting for a writer. The first look is at once, because a command that nobody has
// outlived has nothing to be waited for.
//
// There is one more who may hold a stream for a moment, see starts. It is waited for before
// anybody is blamed, until latest if need be.
func (c *Capture) Drain(until, latest time.Time) (held bool) {
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

// rest reads what is there of all streams, and reports whether all have ended.
func (c *Capture) rest() (ended bool) {
	ended = true
	for i := range c.streams {
		ended = c.readRest(&c.streams[i]) && ended
	}
	return ended
}

// wait waits for done, until the time has come.
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

// LongestSilence is the longest time without output from Config.Begun to end.
func (c *Capture) LongestSilence(end time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.longest, end.Sub(c.last))
}

// closeTime is how long a goroutine may take to end that has no reason to wait any more.
const closeTime = 50 * time.Millisecond

// An End is how a capture ended.
type End struct {
	// Held says that a stream had not ended: somebody still held it, and may have written
	// after the last look.
	Held bool
	// Unwritten is how many bytes the caller's writers did not get, Skipped how many the
	// callback did not.
	Unwritten, Skipped int64
	// Err is what went wrong with reading, or with the caller's reader and writers, and
	// Callback what with the callback.
	Err, Callback error
}

// Finish reads what there still is, and closes the streams. The caller's writers get
// until written to take what is left, unless ctx is done before; the caller's reader and
// callback until returned to return.
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
	wait(left, time.Now().Add(closeTime)) // they stay where the system cannot interrupt a read
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
	for _, s := range c.sinks {
		s.end()
	}
	for _, s := range c.sinks {
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
	if c.in != nil {
		errs = append(errs, c.in.finish(returned))
	}
	if c.live != nil {
		end.Skipped, end.Callback = c.live.finish(returned)
	}
	end.Err = errors.Join(errs...)
	return end
}

// Kept returns what was collected, after Finish. stopped says that the command did not
// end by itself.
func (c *Capture) Kept(stopped bool) (stdout, stderr, combined Kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var bytes [2][]byte
	var open [2]bool
	var kept [2]Kept
	for i := range c.streams {
		s := &c.streams[i]
		b := s.ring.bytes()
		bytes[i] = b
		kept[i] = Kept{
			Total: s.ring.total, Dropped: s.ring.total - int64(len(b)),
			data: func() []byte { return b },
		}
		if open[i] = stopped || !s.ended || s.hungUp; open[i] {
			kept[i].cut = Unfinished(b)
		}
	}
	order := &c.order
	cut := order.flush(open)
	combined = Kept{
		Total: order.total, Dropped: order.total - int64(order.kept),
		data: sync.OnceValue(func() []byte { return order.merge(bytes) }), cut: cut,
	}
	return kept[0], kept[1], combined
}
