package stream

import (
	"io"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Transport is an [http.RoundTripper] that puts each exchange under an idle limit and no total:
// first the wait for the response's header is limited, then the body, as by [Body]. Each chunk of
// the request body also renews the limit, even after the header has come, because a server may wait
// for the end of the request body before it continues.
//
// A silent exchange fails with a [*timeout.Error] of [timeout.KindIdle], from RoundTrip or from the body's
// Read; net/http wraps the former. Contexts and http.Client.Timeout apply as usual.
//
// The zero value is ready to use. A Transport is safe for concurrent use, and must not be changed
// after its first use.
type Transport struct {
	// Base does the exchange and must honour the request's context. nil means
	// [http.DefaultTransport].
	Base http.RoundTripper
	// Idle is the longest allowed silence of an exchange. A negative value means no limit. 0 means
	// 2 min.
	Idle time.Duration
	// Options are passed to the execution that limits each exchange: a logger, hooks, a name. A
	// [timeout.Config] among them replaces Idle.
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
		if req.GetBody != nil { // net/http may have to send the body again
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

// CloseIdleConnections closes the idle connections of Base. http.Client.CloseIdleConnections calls
// it.
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
