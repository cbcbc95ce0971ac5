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

// A Start starts a server; see [StartProcess]. Tests use a function that starts a simulated server.
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

// The time that a server has to end, in the order that the protocol prescribes.
const (
	CloseLimit = 2 * time.Second // after its stdin has been closed, before SIGTERM
	TermLimit  = 3 * time.Second // after SIGTERM, before it is killed
)

// Command returns a dialer that starts a server as the command args. A message of the server has at most most bytes,
// and its stderr is copied to stderr. With notify, the server can send heartbeats on a socket; see procgroup.Notify.
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
			if reading.TryLock() { // otherwise a message still waits for the host, and the rest is dropped
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

// UnheardLimit is how long a server may live after it has closed its stdout. The delay is for a server that is ending,
// which closes its stdout too: its exit status is a better reason than a kill.
const UnheardLimit = 500 * time.Millisecond

// killWithoutStdout kills the server after UnheardLimit, because it has closed its stdout and can send no more
// messages. SPEC 16.7.
func (c *command) killWithoutStdout() {
	time.AfterFunc(UnheardLimit, func() { c.Kill(errors.New("killed: it has closed its stdout")) })
}

// endError returns an error that reports how a server ended. tail is the end of its stderr, and err the error of Wait.
// If the server was killed, the error wraps the reason, and otherwise err.
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

// Close implements [Run]. It closes stdin, then sends SIGTERM, then kills the server, until the server has ended.
func (c *command) Close() {
	c.Outbox.Close()
	for _, step := range []struct {
		limit time.Duration
		next  func()
	}{
		{CloseLimit, c.Terminate},
		{TermLimit, func() { c.Kill(nil) }},
	} {
		select {
		case <-c.over:
			return
		case <-time.After(step.limit):
			step.next()
		}
	}
	<-c.over
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
