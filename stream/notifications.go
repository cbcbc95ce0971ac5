package stream

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Notifications is an [http.RoundTripper] for clients of event streams, such as MCP clients. The notification stream
// that such a client opens with GET becomes one long stream with an idle limit: its connection is closed when it goes
// silent, and the stream is reopened when it goes silent, ends or breaks, until its reader closes it. Every other
// exchange is left to Base, under the caller's limits.
//
// Notifications handles a GET without a body whose Accept header names text/event-stream and that has no
// Last-Event-ID; a GET with a Last-Event-ID is a reconnect by the client itself. Silence counts as in [Transport],
// beginning with the request, and every chunk is a sign of life. If the first request fails or is refused, the caller
// gets that result. A response of status 200 and type text/event-stream is one stream from then on: its reader gets
// the whole events of all connections, in order, without comments, and with lines that end in \n. The package
// documentation says when it is reopened, and how.
//
// The stream ends with the request's context and with Close. It ends with a [*ReopenError] if the server refuses to
// reopen it, with an [*OutageError] after GiveUp, and with [ErrEventTooLarge]. It is not reopened after the client has
// ended its session with a DELETE, or if its first event is an "endpoint", as in MCP's older transport.
//
// The deadline of the request's context, and thus http.Client.Timeout, applies until the header has come; after that,
// only a cancellation ends the stream. An http.Client whose Timeout has passed replaces the text of the stream's
// error with its own, so leave Timeout at 0. Between two reads nothing happens and no goroutine reads ahead: the
// stream is reopened only during a Read.
//
// The zero value is ready to use. Notifications is safe for concurrent use, and must not be changed
// after its first use.
type Notifications struct {
	// Base performs the exchanges and must honour the request's context: RoundTrip, and Read when it reopens the
	// stream, wait for it. nil means [http.DefaultTransport].
	Base http.RoundTripper
	// Idle is the longest allowed silence of a stream. It should be longer than the interval at which the server
	// sends its keep-alives: a stream that is merely quiet is closed and reopened, too, and the events in between are
	// lost unless the server keeps them. A negative value means no limit. 0 means 2 min.
	Idle time.Duration
	// Name is the name of each exchange in errors and hooks, as of [timeout.WithName]. "" means no name.
	Name string

	// Backoff sets the delays before a stream is reopened. The zero Backoff waits 500 ms at first,
	// a fifth longer each time, and at most 10 s.
	Backoff Backoff
	// GiveUp is the length of an outage after which Read returns an [*OutageError]. If no attempt is in progress at that
	// instant, a last one begins. It has the idle limit like every other attempt, so it ends at most one idle limit
	// later. A connection that is lost again before anything comes on it does not end the outage, unless it was open for
	// the idle limit. 0 or less means no limit.
	//
	// The reader decides how to handle that error. The official Go SDK of MCP ends the session with its notification
	// stream, so that later calls fail: connect again, or set no GiveUp.
	GiveUp time.Duration
	// Report receives the state of an outage, for metrics and traces. It is called when a connection is lost and the
	// stream is to be reopened or, after GiveUp, ends; after each attempt to reopen the stream that has failed, with its
	// Err; and after the attempt that has succeeded, with no Err. Attempts is 0 at the first call in an outage. A nil
	// Report does nothing. Read calls Report on its own goroutine and waits for it, with the context of the stream, which
	// has the values of the request's context; Close does not wait. A panic in Report passes to the caller of Read.
	Report func(context.Context, *OutageError)
	// Logger gets records when a stream is lost, when an attempt to reopen it fails or succeeds, and when the stream
	// is given up. Read of the stream waits until it has written them. Records name the server by host and path. nil
	// means no logging.
	Logger *slog.Logger
}

// RoundTrip performs one exchange or opens a stream. The request is not changed. For a stream, RoundTrip ignores the
// Cancel of the request, which http.Client.Timeout sets and which would end the stream; its context does end it.
func (n *Notifications) RoundTrip(req *http.Request) (*http.Response, error) {
	if !asksForEvents(req) {
		if req.Method == http.MethodDelete {
			endSession(req)
		}
		return cmp.Or(n.Base, http.DefaultTransport).RoundTrip(req)
	}
	l := follow(req.Context())
	out := req.WithContext(l.ctx)
	//lint:ignore SA1019 it is what http.Client.Timeout sets, which would end the stream
	out.Cancel = nil
	t := &Transport{Base: n.Base, Idle: n.Idle, Name: n.Name}
	resp, err := t.RoundTrip(out)
	if err != nil {
		if l.ctx.Err() != nil {
			err = context.Cause(l.ctx) // the Cause of the caller's context, as in net/http
		}
		l.end(nil)
		return nil, err
	}
	resp.Request = req
	if !isEvents(resp) {
		resp.Body = &ending{resp.Body, l}
		return resp, nil
	}
	l.opened.Store(true)
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	e := newEvents(n, t, out, l, resp.Body)
	var leave func()
	e.ending, leave = enterSession(req)
	context.AfterFunc(l.ctx, leave)
	resp.Body = e
	return resp, nil
}

func newEvents(n *Notifications, t *Transport, req *http.Request, l *life, conn io.ReadCloser) *events {
	gap := &outage{limit: n.GiveUp, hook: n.Report, logger: n.Logger, server: req.URL.Host + req.URL.Path}
	e := &events{transport: t, request: req, life: l, conn: conn, gap: gap, wait: n.Backoff.waits(), chunk: make([]byte, 4<<10)}
	e.lexer = lexer{to: &e.passer, most: maxEvent}
	e.lexer.connect()
	return e
}

// CloseIdleConnections closes the idle connections of Base, if Base has a method for that.
// http.Client.CloseIdleConnections calls it.
func (n *Notifications) CloseIdleConnections() { closeIdle(n.Base) }

func asksForEvents(req *http.Request) bool {
	if req.Method != http.MethodGet && req.Method != "" || req.Header.Get("Last-Event-ID") != "" ||
		req.Body != nil && req.Body != http.NoBody {
		return false
	}
	for _, accept := range req.Header.Values("Accept") {
		for _, kind := range strings.Split(accept, ",") {
			if isEventType(kind) {
				return true
			}
		}
	}
	return false
}
