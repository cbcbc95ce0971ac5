package stream

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// A life is the context of a stream: the caller's context, which loses its deadline once the stream
// is open.
type life struct {
	ctx    context.Context
	end    context.CancelCauseFunc
	opened atomic.Bool
}

func follow(caller context.Context) *life {
	l := new(life)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(caller, func() {
		if !l.opened.Load() || caller.Err() != context.DeadlineExceeded {
			cancel(context.Cause(caller))
		}
	})
	l.ctx = ctx
	l.end = func(cause error) {
		stop()
		cancel(cause)
	}
	return l
}

// ending is a body that ends its life when it is closed.
type ending struct {
	io.ReadCloser
	life *life
}

func (e *ending) Close() error {
	defer e.life.end(nil)
	return e.ReadCloser.Close()
}

// events is the body of an event stream that outlives its connections. Read does all of the work.
type events struct {
	transport *Transport
	request   *http.Request // the first request, which is sent again
	life      *life

	lexer    lexer
	passer   passer // of whole events
	wait     delays
	gap      *outage
	chunk    []byte // buffer for reads
	consumed int    // number of bytes of passer.out that the reader has had
	lost     error  // why the connection has ended; handled by the next Read
	err      error  // why the stream has ended

	ending <-chan struct{} // closed when the client ends the session of the stream; nil without one

	mu   sync.Mutex // guards conn: Close may come at any time
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

// fill reads one chunk, or reopens the stream. It does not do both: events that came at the end of
// a connection would have to wait for the next one.
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
		e.wait.ask(e.passer.retry)
	}
}

// resume reopens the stream, or ends it.
func (e *events) resume() {
	lost := e.lost
	e.lost = nil
	switch {
	case e.life.ctx.Err() != nil:
		e.fail(context.Cause(e.life.ctx))
		return
	case e.passer.session: // see Notifications
		e.fail(lost)
		return
	case isClosed(e.ending):
		// The client closes the stream next; if it does not, there is none to come back to.
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
		e.gap.over() // a connection that stayed open for the whole limit ends the outage
	case lost == io.EOF:
		lost = io.ErrUnexpectedEOF
	}
	_ = e.conn.Close()
	e.gap.lost(lost)
	if e.gap.spent() {
		e.giveUp()
		return
	}
	e.reopen()
}

// silent reports whether a connection has ended because nothing came. No method of lost is called: it may be Base's own.
func silent(lost error) bool {
	switch e := lost.(type) {
	case *SilenceError:
		return true
	case *timeout.Error: // of a Base that is a Transport, or like one
		return e.Kind == timeout.ErrIdle
	}
	return false
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

// shut closes the connection before it ends the context, which would abort the exchange. A Read
// that fails in between waits before it reopens, and a connection that is adopted afterwards is
// closed by its context.
func (e *events) shut() error {
	e.mu.Lock()
	conn := e.conn
	e.mu.Unlock()
	defer e.life.end(http.ErrBodyReadAfterClose)
	return conn.Close()
}

// reopen tries until there is a connection or a reason to give up.
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
		case <-timer.C: // if ctx has ended too, the attempt fails without reaching the server
		}
		gap.Attempts, gap.Next = gap.Attempts+1, 0
		again := false
		again, gap.Err = e.attempt()
		switch {
		case ctx.Err() != nil: // the end of ctx closes the body of an answer that came nevertheless
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

// attempt opens a connection. If it fails, it returns the error and whether to try again.
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
		e.passer.id = "" // the server may no longer keep the events after it
		again = true
	}
	return again, &ReopenError{StatusCode: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Err: e.gap.Cause}
}

// next returns the request that continues the stream where it was lost.
func (e *events) next() *http.Request {
	req := e.request.Clone(e.life.ctx)
	if id := e.passer.id; id != "" && isHeaderValue(id) {
		req.Header.Set("Last-Event-ID", id)
	}
	return req
}

// retryable reports whether a refusal may be temporary. A server answers 409 if it has not yet
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

// isHeaderValue reports whether net/http would send s.
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
