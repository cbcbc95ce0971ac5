// Package httptimeout runs the handlers of a server under an idle limit and a total, as
// [timeout.Run] runs a function.
//
//	http.Handle("/export", httptimeout.New(export, timeout.Config{
//		Total: time.Hour, Idle: 30 * time.Second,
//	}))
//
// A handler that streams for an hour is left alone, and one that is stuck for half a minute
// is stopped: what it writes and flushes, and what it reads of the request's body, are
// heartbeats, and so is what it beats through the request's context.
//
// [http.TimeoutHandler] has one limit that nothing renews, and holds the response back until
// the handler has returned. Here it goes out as it is written.
//
// # Guarantees
//
//  1. The context of the request carries the heartbeat and is cancelled when a limit fires;
//     its cause is the [*timeout.Error].
//  2. From then on, what the handler does to its ResponseWriter fails with
//     [http.ErrHandlerTimeout] and reaches no client. The ResponseWriter of the server is
//     never used after ServeHTTP has returned, also where the handler goes on for ever.
//  3. If no part of the response was out, the client gets 503 with a Retry-After. If some was,
//     the connection is cut, so that nobody takes half a response for a whole one.
//  4. A panic of the handler is one of ServeHTTP, with the same value where that is an error,
//     such as [http.ErrAbortHandler].
//  5. The ResponseWriter is a [http.Flusher], [http.Hijacker] and [http.Pusher] exactly where
//     that of the server is, has the methods of [http.ResponseController], and sends files as
//     quickly: it is an [io.ReaderFrom].
//  6. The pattern that a mux within sets on the request is set on the caller's when ServeHTTP
//     returns, unless the handler was abandoned. Middleware around names its spans, logs and
//     metrics after it.
//
// # Limits
//
// A hijacked connection is the handler's: the limits go on and cancel the context, but
// transfers on it are no heartbeats unless [heartbeat.Reader] and [heartbeat.Writer] make them
// so. A handler that a slow client holds up in a Write is released when ServeHTTP has to return,
// by a write deadline, which every ResponseWriter of net/http supports; one that does not holds
// up ServeHTTP.
package httptimeout
