package httptimeout

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/setting"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// This file handles the header Request-Timeout, in which a client sends the seconds until the deadline of its request
// (SPEC 18.6).

const requestTimeout = "Request-Timeout"

// withDeadline returns ctx with the deadline that the client has set for the request. Any value but a number of
// seconds above 0 is ignored. The caller must call release.
func withDeadline(ctx context.Context, header http.Header) (_ context.Context, release func()) {
	left, ok := setting.Seconds.Parse(header.Get(requestTimeout))
	if !ok || left <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, left)
}

// A Transport is an [http.RoundTripper] that adds the header Request-Timeout with the seconds left for the request,
// to the millisecond: until the deadline of the request's context, which [http.Client.Timeout] also sets, or the end
// of the total of an execution that the context belongs to; see [timeout.Remaining]. A request that already has the
// header, or has no limit or no time left, is sent unchanged. A server reads the header if [Handler.RequestTimeout]
// is set.
//
// A Transport is safe for concurrent use if Base is.
type Transport struct {
	// Base sends the requests; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends the request through Base, with the header Request-Timeout if a [Transport] adds it to that request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if left, limited := timeout.Remaining(r.Context()); limited && left > 0 && r.Header.Get(requestTimeout) == "" {
		r = r.WithContext(r.Context()) // a RoundTripper must not change the caller's request
		if r.Header = r.Header.Clone(); r.Header == nil {
			r.Header = make(http.Header)
		}
		r.Header.Set(requestTimeout, string(setting.Number(max(left.Truncate(time.Millisecond), time.Millisecond))))
	}
	return cmp.Or(t.Base, http.DefaultTransport).RoundTrip(r)
}
