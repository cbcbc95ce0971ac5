package stream

import (
	"cmp"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Transport is an [http.RoundTripper] that sets an idle limit and no total for each exchange: it limits the wait
// for the response's header, and then the body, as [Body] does. Each chunk of the request body also renews the limit,
// even after the header has come, because a server may wait for the end of the request body before it continues.
//
// A silent exchange fails with a [*SilenceError], from RoundTrip or from the body's Read; an http.Client wraps the
// error of RoundTrip. Data that came before is returned first. Contexts and http.Client.Timeout apply as usual.
//
// The zero value is ready to use. A Transport is safe for concurrent use, and must not be changed after its first use.
type Transport struct {
	// Base performs the exchange and must honour the request's context: RoundTrip waits for it, on its own goroutine.
	// nil means [http.DefaultTransport].
	Base http.RoundTripper
	// Idle is the longest allowed silence of an exchange. A negative value means no limit. 0 means 2 min.
	Idle time.Duration
	// First is the longest allowed wait for the first sign of life of the response's body. The wait begins with the
	// request, and the header does not renew the limit. A separate execution, nested in that of the exchange,
	// enforces First, so observers see two executions. A negative value means no limit. 0 means that Idle limits the
	// wait for the header, and then the wait for the first sign of life.
	First time.Duration
	// Life reports whether an event of an event stream is a sign of life, as [DataEvent] does. An event counts when
	// it is complete; comments do not count. Bytes that are no sign of life are returned to the reader, but renew no
	// limit and are no heartbeat of the enclosing execution. Life is not called for an event of more than 1 MiB, each
	// chunk of which counts. nil means that every chunk is a sign of life, comments included, as in every response
	// that is not an event stream.
	//
	// Life is called during a Read of the body, which waits for it, and may keep the Data of the event.
	Life func(Event) bool
	// Name is the name of each exchange in errors, logs and hooks, as of [timeout.WithName]. "" means no name.
	Name string
	// Logger gets the log records that [timeout.WithLogger] describes for each exchange. The RoundTrip or Read that
	// ends an exchange waits for Logger for at most 7 s. nil means no logging.
	Logger *slog.Logger
}

// RoundTrip performs one exchange. The request is not changed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := begin(req.Context(), t.Idle, t.First, []timeout.Option{timeout.WithName(t.Name), timeout.WithLogger(t.Logger)})
	if err := w.stopped(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, byCaller(err)
	}
	out := req.WithContext(w.ctx)
	renewed := w.active().ctx
	if req.Body != nil && req.Body != http.NoBody {
		up := func(body io.ReadCloser) io.ReadCloser {
			return upload{heartbeat.Reader(renewed, heartbeat.Reader(w.ctx, heartbeat.Reader(req.Context(), body))), body}
		}
		out.Body = up(req.Body)
		if req.GetBody != nil { // net/http may have to send the body a second time
			out.GetBody = func() (io.ReadCloser, error) {
				body, err := req.GetBody()
				if err != nil {
					return nil, err
				}
				return up(body), nil
			}
		}
	}
	resp, err := t.exchange(w, out)
	if err != nil {
		if stop := w.stopped(); stop != nil {
			err = (&count{events: t.Life != nil}).silence(stop)
		}
		w.end()
		return nil, err
	}
	if t.First == 0 {
		w.chunk()
	}
	w.suspend(t.First == 0)
	resp.Request = req
	if resp.Body == nil || resp.Body == http.NoBody {
		w.end()
		return resp, nil
	}
	var j *judge
	if isEvents(resp) {
		j = newJudge(t.Life)
	}
	resp.Body = newBody(w, resp.Body, j)
	return resp, nil
}

// exchange calls Base. If Base panics, it ends the execution.
func (t *Transport) exchange(w *watch, req *http.Request) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned {
			w.end()
		}
	}()
	resp, err := cmp.Or(t.Base, http.DefaultTransport).RoundTrip(req)
	returned = true
	return resp, err
}

// CloseIdleConnections closes the idle connections of Base, if Base has a method for that.
// http.Client.CloseIdleConnections calls it.
func (t *Transport) CloseIdleConnections() { closeIdle(t.Base) }

type upload struct {
	io.Reader
	io.Closer
}

func closeIdle(rt http.RoundTripper) {
	if c, ok := cmp.Or(rt, http.DefaultTransport).(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// isEvents reports whether resp is an event stream that this package can read: its status is 200, its type
// text/event-stream, and it has no Content-Encoding.
func isEvents(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && isEventType(resp.Header.Get("Content-Type")) &&
		resp.Header.Get("Content-Encoding") == ""
}

func isEventType(s string) bool {
	kind, _, _ := mime.ParseMediaType(s)
	return kind == "text/event-stream"
}
