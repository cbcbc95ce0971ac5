// Package capture is everything between a command's standard streams and the caller's: it
// reads the output and keeps the end of it, passes it on to writers and a callback of the
// caller's, and feeds the command from a reader of the caller's, none of which can hold
// it up for ever or bring it down.
package capture

import (
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Unlimited as Config.Max keeps everything.
const Unlimited = math.MaxInt

// A Config is what a Capture is told about the call.
type Config struct {
	// Max is how many bytes are kept of each stream, and of both together.
	Max int
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
// Discard if the command was not started, and otherwise by Start, Finish and Kept.
type Capture struct {
	config  Config
	to      [2]io.Writer // the caller's
	in      *input       // nil: the command reads a file, or nothing
	streams [2]stream
	live    *live
	sinks   []*sink

	mu     sync.Mutex // guards the rings and the order
	order  order
	closed bool // the result has been made

	running atomic.Int32
	done    chan struct{} // closed when both streams have ended
	giveUp  chan struct{} // closed when sinks are not waited for any more
}

// New makes pipes the standard streams of cmd, which is to be started, and remembers what
// they were: what to read from and what to write to.
func New(cmd *exec.Cmd, config Config) (_ *Capture, err error) {
	c := &Capture{
		config: config,
		to:     [2]io.Writer{cmd.Stdout, cmd.Stderr},
		done:   make(chan struct{}),
		giveUp: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			c.Discard()
		}
	}()
	c.order.max = config.Max
	for i := range c.streams {
		s := &c.streams[i]
		if s.r, s.w, err = os.Pipe(); err != nil {
			return nil, err
		}
		s.ring.max = config.Max
	}
	if _, file := cmd.Stdin.(*os.File); cmd.Stdin != nil && !file {
		if c.in, err = newInput(cmd.Stdin, config.Fail); err != nil {
			return nil, err
		}
		cmd.Stdin = c.in.r
	}
	cmd.Stdout, cmd.Stderr = c.streams[0].w, c.streams[1].w
	return c, nil
}

// Discard closes everything where the command was not started.
func (c *Capture) Discard() {
	c.closeWriters()
	c.closeReaders()
	if c.in != nil {
		c.in.close()
	}
}

// Start begins to read and to feed. The command has been started, and so has the other
// ends of the pipes.
func (c *Capture) Start() {
	if c.config.Output != nil {
		c.live = newLive(c.config.Output, c.config.Fail)
	}
	c.startSinks()
	c.closeWriters()
	c.running.Store(int32(len(c.streams)))
	for i := range c.streams {
		go c.collect(i)
	}
	if c.in != nil {
		c.in.start()
	}
}

// startSinks makes the caller's writers sinks. One writer for both streams is one sink,
// so that it is not called concurrently.
func (c *Capture) startSinks() {
	for i, name := range [...]string{"cmd.Stdout", "cmd.Stderr"} {
		if c.to[i] == nil {
			continue
		}
		s := &c.streams[i]
		s.sunk = make(chan struct{}, 1)
		if i == 1 && c.streams[0].sink != nil && same(c.to[0], c.to[1]) {
			s.sink = c.streams[0].sink
			continue
		}
		s.sink = newSink(name, c.to[i], c.config.Fail)
		c.sinks = append(c.sinks, s.sink)
	}
}

// same compares writers. Those of a type that cannot be compared differ.
func same(a, b any) (equal bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (c *Capture) closeWriters() {
	for i := range c.streams {
		if w := c.streams[i].w; w != nil {
			w.Close()
		}
	}
}

func (c *Capture) closeReaders() {
	for i := range c.streams {
		if r := c.streams[i].r; r != nil {
			r.Close()
		}
	}
}

// Wait waits until both streams have ended, or the time has come.
func (c *Capture) Wait(until time.Time) bool {
	select {
	case <-c.done:
		return true
	default:
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
}

// Writing reports whether a writer of the caller's is what is waited for.
func (c *Capture) Writing() bool {
	return c.streams[0].sinking.Load() || c.streams[1].sinking.Load()
}

// closeTime is how long a goroutine may take to end that has no reason to wait any more.
const closeTime = 50 * time.Millisecond

// Finish ends the collection: what is in the pipes is read until the first instant, and
// the caller's reader and callback are given until the second to return. It reports
// whether some process still had a stream open, what went wrong with the caller's reader
// and writers, and what with the callback.
func (c *Capture) Finish(read, returned time.Time) (held bool, err, callback error) {
	c.Wait(read)
	close(c.giveUp) // sinks that are still busy get no more
	c.Wait(read.Add(closeTime))
	held = !c.streams[0].ended.Load() || !c.streams[1].ended.Load()
	c.closeReaders()
	// The readers end now; where a system cannot interrupt a read they are left.
	c.Wait(time.Now().Add(closeTime))
	var errs []error
	for _, s := range c.sinks {
		s.close()
		errs = append(errs, s.failure())
	}
	if c.live != nil {
		c.live.close()
	}
	if c.in != nil {
		errs = append(errs, c.in.finish(returned))
	}
	if c.live != nil {
		callback = c.live.finish(returned)
	}
	return held, errors.Join(errs...), callback
}

// Kept returns what was collected. stopped says that the command did not end by itself.
func (c *Capture) Kept(stopped bool) (stdout, stderr, combined Kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
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
		if open[i] = stopped || !s.ended.Load(); open[i] {
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
