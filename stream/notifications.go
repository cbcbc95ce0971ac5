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

// Notifications is an [http.RoundTripper] for clients of event streams, such as those of
// MCP: the notification stream that they open with GET becomes one long stream. It has
// an idle limit, is found and closed when it goes silent, and is reopened then and when
// it ends or breaks, for as long as its reader wants it. Every other exchange is Base's
// alone, and has its caller's limits.
//
// It takes charge of a GET without a body whose Accept header names text/event-stream and
// which has no Last-Event-ID: one that has is somebody's own reconnect, and SDKs resume the response
// stream of a single request that way. Then
//
//   - silence counts as in [Transport], from the request on. A first request that fails
//     or is refused is the caller's to see, as ever: nothing is retried before there is
//     a stream;
//   - a response of status 200 and type text/event-stream is reopened when it goes
//     silent, ends or fails: after 500 ms, then after a fifth longer each time, at most
//     10 s. It begins afresh after a chunk, and after a silence, because a
//     stream that was open for the whole limit is no failed attempt. The server's retry
//     field sets the first delay, between 100 ms and 10 s;
//   - the request that reopens it is the first one again, with the id of the last whole
//     event as Last-Event-ID, and without that after a status of 400, which is what MCP
//     servers answer when they do not keep what came after it any more;
//   - the reader sees whole events only, so that one that was cut off never runs into the
//     next. Comments renew the limit and are left out; lines end in \n;
//   - it ends with the request's context, with Close, with a [*ReopenError] when the
//     server answers with a status that does not invite to try again (408, 409, 425, 429
//     and 5xx but 501 do) or with something else than an event stream, with an
//     [*OutageError] when there is a limit to trying and it has passed, and with
//     [ErrEventTooLarge]. A server that is not there is asked for ever without that limit.
//
// The stream that begins with an event named "endpoint" is that of MCP's older transport
// over HTTP with SSE. It is the session itself, which ends with it: a new stream is a new
// session, that nobody has initialised. So it has the idle limit and is not reopened, and
// its server should show more often than that that it is alive: the answers to calls come
// on it, too.
//
// A request limit never applies to a stream: once its header has come, the deadline of
// the request's context, and so http.Client.Timeout, is not heeded any more. The
// cancellation of the context is. Before the header, both are. The deprecated
// Request.Cancel is not. An http.Client whose Timeout has passed puts a text of its own
// in the place of the stream's error, though; leave it 0.
//
// Nothing is done between two reads, and no goroutine reads ahead: without a Read nothing is
// reopened. Back-off and GiveUp are on the standard library's clock, whatever the Options
// say.
//
// The zero value is ready to use. Notifications may be used by any number of goroutines,
// and must not be changed once it is.
type Notifications struct {
	// Base does the exchanges; nil is [http.DefaultTransport]. It must heed the request's
	// context.
	Base http.RoundTripper
	// Idle is the longest silence of a stream. It is best longer than the interval at which the
	// server shows that it is alive: a stream that is merely quiet is closed and reopened too,
	// and the events in between are lost if the server does not keep them. 0 means 2 min, and a
	// negative value no limit.
	Idle time.Duration
	// Options are passed to the execution that limits each exchange: a logger, hooks, a
	// name. A [timeout.Config] among them replaces Idle; a total in it would end each
	// of the exchanges that make the stream, and so reopen it.
	Options []timeout.Option

	// GiveUp is how long to try to reopen a stream, from when it was found lost; then Read
	// returns an [*OutageError]. The last attempt is begun at that instant, if none is under
	// way, and is under the idle limit like every other: so it is over an idle limit later at
	// the latest. A connection on which nothing comes before it is lost again does not count
	// as reopened. 0 or less is to try for ever.
	GiveUp time.Duration
	// Hooks are called as a stream is lost, is not reopened, and is.
	Hooks Hooks
	// Logger gets the same in words, and that it was given up. Nil is none. Records are
	// written by Read, synchronously. They name the server by host and path.
	Logger *slog.Logger
}

// RoundTrip does one exchange, or opens a stream. The request is not changed.
func (n *Notifications) RoundTrip(req *http.Request) (*http.Response, error) {
	if !asksForEvents(req) {
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
			err = context.Cause(l.ctx) // the caller's, as net/http has it
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
	resp.Body = newEvents(n, t, out, l, resp.Body)
	return resp, nil
}

// CloseIdleConnections does so in Base, as http.Client.CloseIdleConnections asks.
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

// isEvents says whether resp is an event stream that can be read here.
func isEvents(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && isEventType(resp.Header.Get("Content-Type")) &&
		resp.Header.Get("Content-Encoding") == ""
}

func isEventType(s string) bool {
	kind, _, _ := mime.ParseMediaType(s)
	return kind == "text/event-stream"
}

// A life is the context of a stream: the caller's, without its deadline once the stream
// is there.
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
