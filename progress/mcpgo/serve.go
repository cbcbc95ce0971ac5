package mcpgo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	shared "github.com/tooldeadline/tooldeadline/procgroup/stdio"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// Serve serves one client over in and out, as s.Listen does, until the client leaves or ctx ends. Use
// it instead of server.ServeStdio:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	mcpgo.Install(s, &mcpgo.Options{Policy: policy})
//	err := mcpgo.Serve(ctx, server.NewStdioServer(s), os.Stdin, os.Stdout, 0)
//
// If ctx ends, Serve shuts down in order. Running tools learn of it from [timeout.Closing], if limit is longer than
// [toolcall.ShutdownLimit], and are later aborted with [toolcall.ErrShutdown] as the cause; see
// [toolcall.Drain.Shutdown]. Calls that wait for a worker or arrive later do not reach their tools. Serve returns when
// all of these calls have been answered. The progress of a call is sent before its result or not at all. A call
// that its client cancels is aborted with a [*toolcall.CancelledError], and a call whose client has left with
// [toolcall.ErrDisconnected]. mcp-go alone does none of that. The server must have [Install] or, for its tools,
// [Handler], which does not see cancellations.
//
// A panic of a Read of in or a Write of out becomes an error of that Read or Write. A file that another process makes
// non-blocking is read and written completely; see package stdio. If a read of in is blocked when Serve returns, its
// goroutine remains until in is closed.
//
// The shutdown takes no longer than limit, whatever the tools and the client do. 0 or less means
// [toolcall.ShutdownLimit]. If the client left, Serve returns the error of s.Listen. If ctx ended,
// Serve returns the error of [toolcall.Drain.Shutdown], which is nil if all calls were answered.
//
// Over HTTP use a [toolcall.Drain] and [WrapHTTP].
func Serve(ctx context.Context, s *server.StdioServer, in io.Reader, out io.Writer, limit time.Duration) error {
	if limit <= 0 {
		limit = toolcall.ShutdownLimit
	}
	if f, ok := in.(*os.File); ok && f != nil {
		in = shared.New(f)
	}
	if f, ok := out.(*os.File); ok && f != nil {
		out = shared.New(f)
	}
	var drain toolcall.Drain
	listening, stop := context.WithCancel(drain.Context(context.WithoutCancel(ctx)))
	defer stop()
	client := guarded{in, out}
	l := &line{out: client, ctx: listening, calls: make(map[any][]func()), cancelled: make(map[string]error)}
	l.wire.requests = new(adapter.Sessions)
	l.wire.early = l.early
	l.wire.frame = func(message []byte) error {
		_, err := client.Write(append(message, '\n'))
		return err
	}
	left := make(chan error, 1)
	go func() {
		err := s.Listen(context.WithValue(listening, wireKey{}, &l.wire), &lines{r: bufio.NewReader(client), each: l.arrived, end: func() { l.requests.Abort(nil, nil, toolcall.ErrDisconnected) }}, l)
		l.close()
		left <- err
	}()
	select { // either may win: a client that has left awaits no answer
	case err := <-left:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	err := drain.Shutdown(bounded)
	stop()
	select {
	case <-left:
	case <-bounded.Done():
	}
	return err
}

// A line is the connection of a stdio server to its client. It sees each call when it arrives, before mcp-go
// queues it for a worker, and each answer when it is written. No hook of mcp-go does.
type line struct {
	wire
	out io.Writer
	ctx context.Context // a context with the drain

	callsMu   sync.Mutex       // guards the fields below; a write to a client that does not read does not hold it
	calls     map[any][]func() // by request id, functions that report to the drain that a call has been answered
	cancelled map[string]error // the causes of the calls that were cancelled, by textOf of their ids
	closed    bool             // close has been called
}

// arrived handles a line from the client before mcp-go does: a cancellation aborts its call at once, and a call joins
// the drain.
func (l *line) arrived(text []byte) {
	if id, cause, ok := adapter.Cancelled(text); ok {
		l.cancel(textOf(id), cause)
		return
	}
	var m struct {
		ID     any
		Method string
	}
	if json.Unmarshal(text, &m) != nil || m.Method != string(mcp.MethodToolsCall) {
		return
	}
	switch m.ID.(type) {
	case string, float64:
	default: // a message without an id gets no answer
		return
	}
	_, leave := toolcall.Join(l.ctx)
	l.callsMu.Lock()
	defer l.callsMu.Unlock()
	if l.closed {
		leave()
		return
	}
	l.calls[m.ID] = append(l.calls[m.ID], leave)
	delete(l.cancelled, textOf(m.ID)) // a recorded cancellation is for an earlier call with the same id
}

// cancel aborts a call with a cause before mcp-go cancels the call without one. A call that still waits for a worker
// has not joined l.requests, and mcp-go would run it later in spite of the cancellation. Therefore cancel records the
// cause, and untilCancelled, which calls early after the join, aborts the call then.
func (l *line) cancel(id string, cause error) {
	l.callsMu.Lock()
	for call := range l.calls {
		if textOf(call) == id {
			l.cancelled[id] = cause
		}
	}
	l.callsMu.Unlock()
	l.requests.Abort("", id, cause)
}

// early returns the cause with which the unanswered call with this id was cancelled, or nil if it was not.
func (l *line) early(id string) error {
	l.callsMu.Lock()
	defer l.callsMu.Unlock()
	return l.cancelled[id]
}

// Write writes one message of mcp-go. Several goroutines of mcp-go may call it at the same time.
func (l *line) Write(p []byte) (int, error) {
	l.mu.Lock()
	n, err := writeExchanged(l.out, p)
	l.observe(p)
	l.mu.Unlock()
	if id, ok := answered(p); ok {
		l.leave(id)
	}
	return n, err
}

// answered returns the id of a response; ok is false for other messages. mcp-go writes the id before the result, so
// answered does not parse the result.
func answered(message []byte) (id any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(message))
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	for {
		key, err := d.Token()
		switch {
		case err != nil:
			return nil, false
		case key == "result", key == "error":
			return id, id != nil
		case key != "jsonrpc" && key != "id":
			return nil, false
		}
		value, err := d.Token()
		if err != nil {
			return nil, false
		}
		if key == "id" {
			id = value
		}
	}
}

func (l *line) leave(id any) {
	l.callsMu.Lock()
	defer l.callsMu.Unlock()
	if all := l.calls[id]; len(all) > 0 {
		all[0]()
		if l.calls[id] = all[1:]; len(all) == 1 {
			delete(l.calls, id)
			delete(l.cancelled, textOf(id))
		}
	}
}

// lines is a reader that passes each line to a function before Read returns the line.
type lines struct {
	r    *bufio.Reader
	each func(line []byte)
	end  func() // called at the end of r, before Read returns the error
	rest []byte
	err  error
}

func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if l.err == nil {
			l.rest, l.err = l.r.ReadBytes('\n')
			l.each(l.rest)
		}
		if len(l.rest) == 0 {
			l.end()
			return 0, l.err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// close removes the remaining calls from the drain, because they will not be answered.
func (l *line) close() {
	l.callsMu.Lock()
	defer l.callsMu.Unlock()
	l.closed = true
	for _, all := range l.calls {
		for _, leave := range all {
			leave()
		}
	}
	clear(l.calls)
	clear(l.cancelled)
}
