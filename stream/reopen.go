package stream

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/backoff"
)

// events is the body of an event stream that outlives its connections. Read reopens the stream; no other goroutine
// works for it.
type events struct {
	transport *Transport
	request   *http.Request // the client's request, which is sent again to reopen the stream
	life      *life

	lexer    lexer
	passer   passer // passes whole events to out
	wait     backoff.Waits
	gap      *outage
	chunk    []byte // buffer for reads
	consumed int    // number of bytes of passer.out that Read has returned
	lost     error  // the error that ended the connection; the next fill handles it
	err      error  // the error that ended the stream, or nil

	ending <-chan struct{} // closed when the client ends the session of the stream; nil if the stream has no session

	mu   sync.Mutex // guards conn, because Close may be called at any time
	conn io.ReadCloser
}

func (e *events) Read(p []byte) (int, error) {
	for len(p) > 0 && e.consumed == len(e.passer.out) && e.err == nil {
		e.fill()
	}
	if e.consumed < len(e.passer.out) {
		n := copy(p, e.passer.out[e.consumed:])
		e.consumed += n
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, e.err
}

// fill reads one chunk, or reopens the stream, but does not do both: events that came at the end of a connection
// would otherwise have to wait for the next connection.
func (e *events) fill() {
	e.passer.out, e.consumed = reuse(e.passer.out), 0
	if e.lost != nil {
		e.resume()
		return
	}
	var n int
	n, e.lost = e.conn.Read(e.chunk)
	if n == 0 {
		return
	}
	e.wait.Reset()
	e.gap.over()
	if !e.lexer.feed(e.chunk[:n]) {
		e.fail(ErrEventTooLarge)
	} else if e.passer.hasRetry {
		e.wait.First = min(max(e.passer.retry, minDelay), e.wait.Max)
	}
}

// resume reopens the stream after the loss of its connection, or ends it.
func (e *events) resume() {
	lost := e.lost
	e.lost = nil
	switch {
	case e.life.ctx.Err() != nil:
		e.fail(context.Cause(e.life.ctx))
		return
	case e.passer.session: // MCP's older transport: the stream cannot be reopened
		e.fail(lost)
		return
	case isClosed(e.ending):
		// The client is expected to close the stream now. If it does not, the stream still ends, since its session is
		// over.
		wait := time.NewTimer(closingWait)
		defer wait.Stop()
		select {
		case <-e.life.ctx.Done():
			e.fail(context.Cause(e.life.ctx))
		case <-wait.C:
			e.fail(lost)
		}
		return
	case silent(lost):
		e.wait.Reset()
		e.gap.over() // a connection that was open for the whole limit ends the outage
	case lost == io.EOF:
		lost = io.ErrUnexpectedEOF
	}
	_ = e.conn.Close()
	e.gap.lost(lost)
	if e.gap.spent() {
		e.gap.report(e.life.ctx, slog.LevelWarn, "event stream lost")
		e.giveUp()
		return
	}
	e.reopen()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (e *events) giveUp() {
	e.gap.log(e.life.ctx, slog.LevelWarn, "event stream not reopened, given up")
	gone := e.gap.OutageError
	e.fail(&gone)
}

func (e *events) fail(err error) {
	e.err = err
	_ = e.shut()
}

func (e *events) Close() error { return e.shut() }

// shut closes the connection and then ends the context, in this order, because the end of the context would abort the
// exchange. A Read that fails in between waits before it reopens the stream. A connection that Read opens meanwhile
// is closed by the end of the context.
func (e *events) shut() error {
	e.mu.Lock()
	conn := e.conn
	e.mu.Unlock()
	defer e.life.end(http.ErrBodyReadAfterClose)
	return conn.Close()
}

// reopen tries to open a connection until it succeeds, the context ends, the server refuses, or GiveUp has passed.
// Except after a success, it ends the stream.
func (e *events) reopen() {
	ctx, gap := e.life.ctx, e.gap
	level, msg := slog.LevelInfo, "event stream lost"
	for {
		gap.Next = gap.wait(e.wait.Next())
		gap.report(ctx, level, msg)
		timer := time.NewTimer(gap.Next)
		select {
		case <-ctx.Done():
			timer.Stop()
			e.fail(context.Cause(ctx))
			return
		case <-timer.C: // if ctx has ended too, the attempt fails before it reaches the server
		}
		gap.Attempts, gap.Next = gap.Attempts+1, 0
		again := false
		again, gap.Err = e.attempt()
		switch {
		case ctx.Err() != nil: // the end of ctx closes the body of a response that came nevertheless
			e.fail(context.Cause(ctx))
			return
		case gap.Err == nil:
			gap.report(ctx, slog.LevelInfo, "event stream reopened")
			return
		case !again:
			gap.report(ctx, slog.LevelWarn, "event stream not reopened, refused")
			e.fail(gap.Err)
			return
		case gap.spent():
			gap.report(ctx, slog.LevelWarn, "event stream not reopened")
			e.giveUp()
			return
		}
		level, msg = slog.LevelWarn, "event stream not reopened"
	}
}

// attempt tries to open a connection. If that fails, it returns the error, and again reports whether another attempt
// may succeed.
func (e *events) attempt() (again bool, _ error) {
	req := e.next()
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return true, err
	}
	if isEvents(resp) {
		e.lexer.connect()
		e.mu.Lock()
		e.conn = resp.Body
		e.mu.Unlock()
		return false, nil
	}
	_ = resp.Body.Close()
	again = retryable(resp.StatusCode)
	if resp.StatusCode == http.StatusBadRequest && req.Header.Get("Last-Event-ID") != "" {
		e.passer.id = "" // the server may no longer keep the events after this ID
		again = true
	}
	return again, &ReopenError{StatusCode: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Err: e.gap.Cause}
}

// next returns the request that reopens the stream after the last whole event.
func (e *events) next() *http.Request {
	req := e.request.Clone(e.life.ctx)
	refused := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f } // by net/http, in the value of a header
	if id := e.passer.id; id != "" && !strings.ContainsFunc(id, refused) {
		req.Header.Set("Last-Event-ID", id)
	}
	return req
}

// retryable reports whether a refusal with the status may be temporary. A server answers 409 if it has not yet
// noticed the end of the previous stream.
func retryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	}
	return status >= 500
}
