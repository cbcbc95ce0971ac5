package stream

import (
	"context"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// Notifications is an [http.RoundTripper] for clients of event streams, such as MCP clients. The
// notification stream that such a client opens with GET becomes one long stream with an idle limit:
// it is closed when it goes silent, and reopened when it goes silent, ends or breaks, until its
// reader closes it. Every other exchange is left to Base, under the caller's limits.
//
// Notifications handles a GET without a body whose Accept header names text/event-stream and that
// has no Last-Event-ID. A GET with a Last-Event-ID is a reconnect by the client itself; SDKs resume
// the response stream of a single request in that way. The following rules apply:
//
//   - Silence counts as in [Transport], beginning with the request. Every chunk is a sign of life,
//     even a keep-alive, because a healthy notification stream may have nothing else to send. If the
//     first request fails or is refused, the caller gets that result: nothing is retried before
//     there is a stream.
//   - A response of status 200 and type text/event-stream is reopened when it goes silent, ends or
//     fails, after the delays of Backoff. They start again after a chunk. They also start again
//     after a silence, because a stream that was open for the whole limit was no failed attempt. The
//     server's retry field sets the first delay, between 100 ms and Backoff.Max.
//   - To reopen the stream, the first request is sent again with the id of the last whole event as
//     Last-Event-ID. After a status of 400 the request is sent without that header: MCP servers
//     answer 400 if they no longer keep the events after that id.
//   - The reader gets whole events only, so an event that was cut off never runs into the next one.
//     Comments renew the limit and are dropped. Lines end in \n.
//   - When the client ends its session, with a DELETE that passes through a Notifications, the end of
//     the session's streams is no loss, and is not reported.
//   - The stream ends with the request's context and with Close. It ends with a [*ReopenError] if
//     the server answers with a non-retryable status (all except 408, 409, 425, 429, and 5xx other
//     than 501) or with something other than an event stream. It ends with an [*OutageError] after
//     GiveUp, and with [ErrEventTooLarge]. Without a GiveUp, an unreachable server is retried for
//     ever.
//
// A stream that begins with an event named "endpoint" belongs to MCP's older transport, HTTP with
// SSE. There the session ends with the stream, and a new stream would be a new session that has not
// been initialised. Such a stream therefore has the idle limit but is not reopened, and its server
// should send something at shorter intervals than the limit. The answers to calls come on this
// stream, too.
//
// A request limit never applies to a stream. Before the header has come, the deadline of the
// request's context, and thus http.Client.Timeout, and its cancellation both apply; after it, only
// the cancellation does. The deprecated Request.Cancel is ignored. However, an http.Client whose
// Timeout has passed replaces the text of the stream's error with its own, so leave Timeout at 0.
//
// Nothing happens between two reads, and no goroutine reads ahead: the stream is reopened only
// during a Read. The back-off and GiveUp use the standard library's clock, even if the Options set
// another.
//
// The zero value is ready to use. Notifications is safe for concurrent use, and must not be changed
// after its first use.
type Notifications struct {
	// Base does the exchanges and must honour the request's context: RoundTrip, and Read when it reopens
	// the stream, wait for it. nil means [http.DefaultTransport].
	Base http.RoundTripper
	// Idle is the longest allowed silence of a stream. It should be longer than the interval at
	// which the server sends its keep-alives: a stream that is merely quiet is closed and reopened,
	// too, and the events in between are lost unless the server keeps them. A negative value means
	// no limit. 0 means 2 min.
	Idle time.Duration
	// Options are passed to the execution that limits each exchange: a logger, hooks, a name. A
	// [timeout.Config] among them replaces Idle. A total in that Config ends each exchange of the
	// stream, so the stream is reopened.
	Options []timeout.Option

	// Backoff sets the delays before a stream is reopened. The zero Backoff waits 500 ms at first,
	// a fifth longer each time, and at most 10 s.
	Backoff Backoff
	// GiveUp is how long the stream may stay lost before Read returns an [*OutageError]. If no
	// attempt is in progress at that instant, a last one begins. It has the idle limit like every
	// other attempt, so it ends at most one idle limit later. A connection that is lost again
	// before anything comes on it does not count as reopened. 0 or less means no limit.
	//
	// What the reader makes of that error is its own affair. The official Go SDK of MCP ends the session
	// with its notification stream, so that calls fail from then on: connect again, or set no GiveUp.
	GiveUp time.Duration
	// Hooks are called when a stream is lost, when an attempt to reopen it fails and when one
	// succeeds.
	Hooks Hooks
	// Logger gets a record when a stream is lost, when an attempt to reopen it fails, when one succeeds, and
	// when the stream is given up. Read of the stream waits until it has written them. They name the server
	// by host and path. nil means no logging.
	Logger *slog.Logger
}

// RoundTrip does one exchange or opens a stream. The request is not changed.
func (n *Notifications) RoundTrip(req *http.Request) (*http.Response, error) {
	if !asksForEvents(req) {
		if req.Method == http.MethodDelete {
			endSession(req)
		}
		return base(n.Base).RoundTrip(req)
	}
	l := follow(req.Context())
	out := req.WithContext(l.ctx)
	//lint:ignore SA1019 it is what http.Client.Timeout sets, which would end the stream
	out.Cancel = nil
	t := &Transport{Base: n.Base, Idle: n.Idle, Options: n.Options}
	resp, err := t.RoundTrip(out)
	if err != nil {
		if l.ctx.Err() != nil {
			err = context.Cause(l.ctx) // the caller's cause, as in net/http
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

// CloseIdleConnections closes the idle connections of Base. http.Client.CloseIdleConnections calls
// it.
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

// isEvents reports whether resp is an event stream that this package can read.
func isEvents(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && isEventType(resp.Header.Get("Content-Type")) &&
		resp.Header.Get("Content-Encoding") == ""
}

func isEventType(s string) bool {
	kind, _, _ := mime.ParseMediaType(s)
	return kind == "text/event-stream"
}

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
