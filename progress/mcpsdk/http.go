package mcpsdk

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// WrapHTTP wraps the SDK's handlers for HTTP, and does four things that [Install] cannot do alone:
//
//   - A call that its client cancels is aborted with a [*toolcall.CancelledError], which has the
//     client's reason. The SDK drops the reason.
//   - A tool is aborted when its client disconnects, on SSE and on stateless Streamable HTTP, where
//     no client could ever fetch the result. The SDK lets such a tool run on until its limits stop
//     it. On stateful Streamable HTTP a tool runs on, because the client may come back for the
//     result. It is aborted when the client ends the session; the SDK alone would wait for the tools
//     before it ends the session.
//   - Progress tokens that are integers above 2^53 are echoed exactly (see [WrapTransport]), but
//     only the first 100 of a batch.
//   - Install sees which calls ask for a task in protocol 2025-11-25; see Tasks of [Options].
//
// A call that has become a task runs on when its client disconnects or ends the session.
//
// WrapHTTP examines the body of a request while the SDK reads it, so an inner handler can still refuse a request at
// once. Put handlers that authorise requests, check the Origin header or look at ContentLength around WrapHTTP, and a
// [toolcall.Drain] around these. Between WrapHTTP and the SDK's handler there may be [Poll] and a choice among several
// such handlers, but nothing else, and never an http.TimeoutHandler, which cuts calls off without an answer.
//
//	http.ListenAndServe(addr, mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(getServer, options)))
//
// If a proxy cuts the streams of long calls, use [Poll]; if it closes quiet notification streams, use stream.KeepAlive.
func WrapHTTP(h http.Handler) http.Handler {
	calls, requests := new(adapter.Sessions), new(adapter.Sessions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, &httpRequest{r.Context(), calls, requests}))
		if session := r.Header.Get(sessionHeader); session != "" && mayCancel(r) {
			r.Body = &cancelBody{ReadCloser: r.Body, session: session, requests: requests}
		}
		switch {
		case mayHaveToken(r):
			r.Body = &tokenBody{ReadCloser: r.Body}
			r.ContentLength = -1 // a tokenBody may be longer
		case r.Method == http.MethodDelete:
			defer abortUnlessAnswered(calls, r.Header.Get(sessionHeader))()
		}
		h.ServeHTTP(w, r)
	})
}

// maxCancel is the largest body, in bytes, that is examined for a cancellation; see [adapter.Cancelled].
const maxCancel = 64 << 10

// mayCancel reports whether a request may be a notifications/cancelled.
func mayCancel(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Body != nil && r.ContentLength <= maxCancel
}

// A cancelBody is the body of a request. If it is a notifications/cancelled, Read aborts the call with the reason
// before the SDK has the end of the body, and cancels without the reason.
type cancelBody struct {
	io.ReadCloser
	session  string
	requests *adapter.Sessions // by sessionRequest
	read     []byte
}

func (b *cancelBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if len(b.read) <= maxCancel {
		b.read = append(b.read, p[:max(n, 0)]...)
	}
	if err == io.EOF {
		if id, cause, ok := adapter.Cancelled(b.read); ok {
			b.requests.Abort(sessionRequest{b.session, id}, cause)
		}
	}
	return n, err
}

// mayHaveToken reports whether a request may be a tools/call, which may have a large progress token. From protocol
// 2026-07-28 on the method is in a header.
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
