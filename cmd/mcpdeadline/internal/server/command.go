package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Start starts a server: [StartProcess], or in tests what starts a simulated one.
type Start func(context.Context, Launch) (Child, error)

// A command is a server that runs as a process.
type command struct {
	*jsonrpc.Outbox // its stdin
	Child
	queue int // see [jsonrpc.QueueOf]
	stop  context.CancelCauseFunc
	over  chan struct{}
	end   error // set before over is closed
}

// How long the server has to end, as the protocol describes it: after its stdin is closed, and then
// after SIGTERM.
const (
	CloseLimit = 2 * time.Second
	TermLimit  = 3 * time.Second
)

// Command returns a dialer that starts a command. Its messages have most bytes, and what it writes to its stderr goes
// to stderr. With notify, the server can say that it works.
func Command(start Start, args []string, most int, stderr io.Writer, notify bool) Dialer {
	return func(r Receiver) (Run, error) {
		ctx, stop := context.WithCancelCause(context.Background())
		c := &command{queue: jsonrpc.QueueOf(most), stop: stop, over: make(chan struct{})}
		out := &jsonrpc.Splitter{Max: most, Long: r.Long, Line: func(line []byte) { r.Message(jsonrpc.Parse(line)) }}
		var reading sync.Mutex
		var err error
		c.Child, err = start(ctx, Launch{
			Args: args,
			Stdout: writerFunc(func(p []byte) (int, error) {
				reading.Lock()
				defer reading.Unlock()
				return out.Write(p)
			}),
			Stderr: writerFunc(func(p []byte) (int, error) {
				r.Stderr()
				_, _ = stderr.Write(p)
				return len(p), nil
			}),
			Closed: c.killWithoutStdout,
			Notify: notify,
		})
		if err != nil {
			stop(nil)
			return nil, err
		}
		in, now := c.Stdin()
		c.Outbox = jsonrpc.NewOutbox(in, func() { _ = in.Close() })
		c.Now = now
		go func() {
			tail, err := c.Wait()
			if reading.TryLock() { // otherwise the rest still waits for the host
				out.Flush()
				reading.Unlock()
			}
			c.Outbox.Close()
			stop(nil)
			c.end = endError(tail, err)
			close(c.over)
		}()
		return c, nil
	}
}

// UnheardLimit is how long a server may live after it has closed its stdout. A server that ends also closes its
// stdout, and its exit status says more than this limit.
const UnheardLimit = 500 * time.Millisecond

// killWithoutStdout kills a server that has closed its stdout and lives: nothing that it does can be heard any more.
// SPEC 16.7.
func (c *command) killWithoutStdout() {
	time.AfterFunc(UnheardLimit, func() { c.Kill(errors.New("killed: it has closed its stdout")) })
}

// endError returns an error that reports how a server ended, with the end of its stderr. It wraps err.
func endError(tail string, err error) error {
	var stopped *timeout.Error
	switch {
	case errors.As(err, &stopped) && stopped.Cause != nil:
		err = stopped.Cause // why it was killed
	case err == nil:
		err = errors.New("exit status 0")
	}
	if tail = strings.TrimSpace(tail); tail != "" {
		return fmt.Errorf("%w\nIts stderr ends with:\n%s", err, tail)
	}
	return err
}

func (c *command) Send(m *jsonrpc.Message) { c.Put(m) }

func (c *command) Await() { c.Outbox.Await(c.queue) }

func (c *command) Kill(why error) { c.stop(why) }

func (c *command) Ended() <-chan struct{} { return c.over }

func (c *command) Why() error { return c.end }

func (c *command) Processes() Observable { return c }

// Close implements [Run]. It hides the Close of the Outbox.
func (c *command) Close() {
	c.Outbox.Close()
	for _, step := range []struct {
		limit time.Duration
		next  func()
	}{
		{CloseLimit, c.Terminate},
		{TermLimit, func() { c.Kill(nil) }},
	} {
		timer := time.NewTimer(step.limit)
		select {
		case <-c.over:
			timer.Stop()
			return
		case <-timer.C:
			step.next()
		}
	}
	<-c.over
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
