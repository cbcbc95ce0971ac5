package main

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

// A command is a server that runs as a process.
type command struct {
	*jsonrpc.Outbox // its stdin
	child
	queue int // see queueOf
	stop  context.CancelCauseFunc
	over  chan struct{}
	end   error // set before over is closed
}

// How long the server has to end, as the protocol describes it: after its stdin is closed, and then
// after SIGTERM.
const (
	closeLimit = 2 * time.Second
	termLimit  = 3 * time.Second
)

// tailKeptOfStderr is how many bytes of the server's stderr are kept for the error that reports its
// end.
const tailKeptOfStderr = 4 << 10

// startCommand returns a dialer.
func (sys system) startCommand(args []string, most int, stderr io.Writer) dialer {
	return func(r receiver) (upstream, error) {
		ctx, stop := context.WithCancelCause(context.Background())
		c := &command{queue: jsonrpc.QueueOf(most), stop: stop, over: make(chan struct{})}
		out := &jsonrpc.Splitter{Max: most, Long: r.long, Line: func(line []byte) { r.message(jsonrpc.Parse(line)) }}
		var reading sync.Mutex
		var err error
		c.child, err = sys.start(ctx, launch{
			args: args,
			stdout: writerFunc(func(p []byte) (int, error) {
				reading.Lock()
				defer reading.Unlock()
				return out.Write(p)
			}),
			stderr: writerFunc(func(p []byte) (int, error) {
				r.stderr()
				_, _ = stderr.Write(p)
				return len(p), nil
			}),
			closed: c.unheard,
		})
		if err != nil {
			stop(nil)
			return nil, err
		}
		in, now := c.stdin()
		c.Outbox = jsonrpc.NewOutbox(in, func() { _ = in.Close() })
		c.Now = now
		go func() {
			tail, err := c.wait()
			if reading.TryLock() { // otherwise the rest still waits for the host
				out.Flush()
				reading.Unlock()
			}
			c.Outbox.Close()
			stop(nil)
			c.end = epitaph(tail, err)
			close(c.over)
		}()
		return c, nil
	}
}

// unheardLimit is how long a server may live without its stdout. One that ends closes it, too, and how it ended says
// more.
const unheardLimit = 500 * time.Millisecond

// unheard kills a server that has closed its stdout and lives: nothing that it does can be heard any more. SPEC 16.7.
func (c *command) unheard() {
	time.AfterFunc(unheardLimit, func() { c.kill(errors.New("killed: it has closed its stdout")) })
}

// epitaph returns an error that reports how a server ended, with the end of its stderr. It wraps err.
func epitaph(tail string, err error) error {
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

func (c *command) send(m *jsonrpc.Message) { c.Put(m) }
func (c *command) await()                  { c.Outbox.Await(c.queue) }
func (c *command) kill(why error)          { c.stop(why) }
func (c *command) ended() <-chan struct{}  { return c.over }
func (c *command) why() error              { return c.end }
func (c *command) processes() observable   { return c }

func (c *command) close() {
	c.Outbox.Close()
	for _, step := range []struct {
		limit time.Duration
		next  func()
	}{
		{closeLimit, c.terminate},
		{termLimit, func() { c.kill(nil) }},
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

// A lossyWriter passes on to w and drops what comes while w is too slow: a host that does not read the
// log of a server must not stop the server.
type lossyWriter struct {
	c    chan []byte
	done chan struct{}
}

func newLossyWriter(w io.Writer) *lossyWriter {
	l := &lossyWriter{make(chan []byte, 256), make(chan struct{})}
	go func() {
		defer close(l.done)
		for p := range l.c {
			if p == nil {
				return
			}
			if _, err := w.Write(p); err != nil {
				return
			}
		}
	}()
	return l
}

func (l *lossyWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		select {
		case l.c <- append([]byte(nil), p...):
		default:
		}
	}
	return len(p), nil
}

// flush waits until everything has been written. Nothing is written afterwards.
func (l *lossyWriter) flush(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case l.c <- nil:
		select {
		case <-l.done:
		case <-timer.C:
		}
	case <-l.done:
	case <-timer.C:
	}
}
