package mcpsdk

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// WrapHTTP wraps the SDK's handlers for HTTP, and does four things that [Middleware] cannot do alone:
//
//   - A call that its client cancels is aborted with a [*toolcall.CancelledError], which has the
//     client's reason. The SDK drops the reason.
//   - A tool is aborted when its client disconnects, on SSE and on stateless Streamable HTTP, where
//     no client could ever fetch the result. The SDK lets such a tool run on until its limits stop
//     it. On stateful Streamable HTTP a tool runs on by design, because the client may come back for
//     the result, until the client ends the session; the SDK would keep the end of the session
//     waiting for the tools.
//   - Progress tokens that are integers above 2^53 are echoed exactly, see [WrapTransport]; in a
//     batch, the first 100 are.
//   - Calls that ask for a task in protocol 2025-11-25 are recognised, see [WithTasks].
//
// A call that has become a task runs on when its client disconnects or ends the session.
//
// WrapHTTP reads no body by itself: it looks at a body while the SDK reads it, and only if it can be a
// tools/call, whose ContentLength is then -1. So an inner handler can still refuse a request at once.
// Handlers that authorise requests belong outside of WrapHTTP, because a client that may not end a
// session must not reach it with a DELETE; so do handlers that turn web pages away, and those that
// look at ContentLength. A [toolcall.Drain] goes around all of them. Between WrapHTTP and the SDK's
// handler there should be nothing but a choice among several such handlers, and never an
// http.TimeoutHandler, which cuts calls off without an answer.
//
// A client of protocol 2026-07-28 cancels a call by disconnecting, so a server without WrapHTTP should
// set PropagateRequestCancellation in mcp.StreamableHTTPOptions.
//
//	http.ListenAndServe(addr, mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(getServer, options)))
//
// A proxy may cut the streams of long calls, see [WithPolling], and may take quiet notification
// streams for dead, see stream.KeepAlive.
func WrapHTTP(h http.Handler, opts ...HTTPOption) http.Handler {
	calls, requests := new(adapter.Sessions), new(adapter.Sessions)
	var set httpSettings
	for _, opt := range opts {
		opt.forHTTP(&set)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, &httpRequest{r.Context(), calls, requests}))
		if session := r.Header.Get(sessionHeader); session != "" && mayCancel(r) {
			r.Body = &cancelBody{ReadCloser: r.Body, cancelled: func(id any, cause error) {
				requests.Abort(sessionRequest{session, id}, cause)
			}}
		}
		switch {
		case mayHaveToken(r):
			r.Body = &tokenBody{ReadCloser: r.Body}
			r.ContentLength = -1 // may change
		case r.Method == http.MethodDelete:
			defer abortUnlessAnswered(calls, r.Header.Get(sessionHeader))()
		}
		w, r, end := polled(w, r, set.poll)
		defer end()
		h.ServeHTTP(w, r)
	})
}

// mayCancel reports whether the body of a request can be a notifications/cancelled. They are small.
func mayCancel(r *http.Request) bool {
	const most = 64 << 10
	return r.Method == http.MethodPost && r.Body != nil && r.ContentLength <= most
}

// A cancelBody is the body of a request, and calls cancelled at its end if it cancels another one:
// before the SDK does, which drops the reason.
type cancelBody struct {
	io.ReadCloser
	seen      adapter.CancelledReader
	cancelled func(id any, cause error)
}

func (b *cancelBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, _ = b.seen.Write(p[:max(n, 0)])
	if err == io.EOF {
		if id, cause, ok := b.seen.Cancelled(); ok {
			b.cancelled(id, cause)
		}
	}
	return n, err
}

// mayHaveToken reports whether the body of a request can be one of tools/call. A client of
// protocol 2026-07-28 says in a header what it asks for.
func mayHaveToken(r *http.Request) bool {
	if r.Method != http.MethodPost || r.Body == nil || r.Body == http.NoBody {
		return false
	}
	if m := r.Header.Get("Mcp-Method"); m != "" && m != "tools/call" {
		return false
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	return kind == "" || strings.EqualFold(kind, "application/json")
}
