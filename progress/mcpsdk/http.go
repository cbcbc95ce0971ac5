package mcpsdk

import (
	"context"
	"net/http"

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
//     only in the first 100 messages of a batch.
//   - Install sees which calls ask for a task in protocol 2025-11-25; see Tasks of [Options].
//
// A call that has become a task runs on when its client disconnects or ends the session.
//
// WrapHTTP examines the body of a request, if it has less than 4 MiB, when the SDK begins to read it, so an inner handler
// can still refuse a request at once. Put handlers that authorise requests, check the Origin header or look at
// ContentLength around WrapHTTP, and a [toolcall.Drain] around these. Between WrapHTTP and the SDK's handler there may be
// [Poll] and a choice among several such handlers, but nothing else, and never an http.TimeoutHandler, which cuts calls
// off without an answer.
//
//	http.ListenAndServe(addr, mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(getServer, options)))
//
// If a proxy cuts the streams of long calls, use [Poll]; if it closes quiet notification streams, use stream.KeepAlive.
func WrapHTTP(h http.Handler) http.Handler {
	calls := new(adapter.Sessions)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, &httpRequest{r.Context(), calls}))
		session, copies := r.Header.Get(sessionHeader), mayHaveCopies(r)
		switch {
		case r.Method == http.MethodDelete:
			defer abortUnlessAnswered(calls, session)()
		case r.Method == http.MethodPost && r.Body != nil && r.Body != http.NoBody && (session != "" || copies):
			r.Body = &body{ReadCloser: r.Body, read: func(data []byte) []byte {
				if id, cause, ok := adapter.Cancelled(data); ok && session != "" { // before the SDK cancels without the reason
					calls.Abort(session, id, cause)
				}
				if !copies {
					return data
				}
				return messagesWithCopies(data)
			}}
			r.ContentLength = -1 // it may become longer
		}
		h.ServeHTTP(w, r)
	})
}
