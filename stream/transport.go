package stream

import (
	"io"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Transport is an [http.RoundTripper] that puts each exchange under an idle limit and no
// total: the wait for the response's header is limited, and then its body is as
// [Body] says. Each chunk of a request body that is being sent renews the limit too, also
// after the header has come: a server may wait for the end of one before it goes on.
//
// The error of a silent exchange is a [*timeout.Error] of [timeout.KindIdle], from RoundTrip or
// from the body's Read; net/http wraps the former. Contexts and http.Client.Timeout
// count as ever.
//
// The zero value is ready to use. A Transport may be used by any number of goroutines,
// and must not be changed once it is.
type Transport struct {
	// Base does the exchange; nil is [http.DefaultTransport]. It must heed the request's
	// context.
	Base http.RoundTripper
	// Idle is the longest silence of an exchange. 0 means 2 min, and a negative value no limit.
	Idle time.Duration
	// Options are passed to the execution that limits each exchange: a logger, hooks, a
	// name. A [timeout.Config] among them replaces Idle.
	Options []timeout.Option
}

// RoundTrip does one exchange. The request is not changed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := begin(req.Context(), t.Idle, t.Options)
	if err := w.stopped(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	out := req.WithContext(w.ctx)
	if req.Body != nil && req.Body != http.NoBody {
		up := func(body io.ReadCloser) io.ReadCloser {
			return upload{heartbeat.Reader(w.ctx, heartbeat.Reader(req.Context(), body)), body}
		}
		out.Body = up(req.Body)
		if req.GetBody != nil { // for net/http, which may have to send it again
			out.GetBody = func() (io.ReadCloser, error) {
				body, err := req.GetBody()
				if err != nil {
					return nil, err
				}
				return up(body), nil
			}
		}
	}
	resp, err := base(t.Base).RoundTrip(out)
	if err != nil {
		if stop := w.stopped(); stop != nil {
			err = stop
		}
		w.end()
		return nil, err
	}
	w.chunk()
	w.suspend()
	resp.Request = req
	if resp.Body == nil || resp.Body == http.NoBody {
		w.end()
		return resp, nil
	}
	resp.Body = newBody(w, resp.Body)
	return resp, nil
}

// CloseIdleConnections does so in Base, as http.Client.CloseIdleConnections asks.
func (t *Transport) CloseIdleConnections() { closeIdle(t.Base) }

type upload struct {
	io.Reader
	io.Closer
}

func base(rt http.RoundTripper) http.RoundTripper {
	if rt == nil {
		return http.DefaultTransport
	}
	return rt
}

func closeIdle(rt http.RoundTripper) {
	if c, ok := base(rt).(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
