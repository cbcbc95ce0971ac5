// Package httptimeout runs the handlers of a server under an idle limit and a total, as [timeout.Run] runs a function.
//
//	http.Handle("/export", &httptimeout.Handler{
//		Handler: export,
//		Limits:  &timeout.Config{Total: time.Hour, Idle: 30 * time.Second},
//	})
//
// A handler may stream for an hour, but is stopped when it has been stuck for half a minute. Each write and flush,
// and each read of the request's body, is a heartbeat, and so is heartbeat.Beat with the request's context.
//
// [http.TimeoutHandler] has one limit that nothing renews, and holds the response back until
// the handler has returned. This package sends the response as it is written. The page docs/http.md of
// the repository compares the two case by case.
//
// # Guarantees
//
//  1. The context of the request carries the heartbeat and is cancelled when a limit fires; its cause is the
//     [*timeout.Error]. A limit is the idle limit, the total, a deadline of the request's context, or a limit of an
//     enclosing execution. A request whose deadline has already passed is answered without calling the handler.
//  2. The execution ends with a limit or with the handler, and not with the request. When the
//     client goes away or closes its sending half, or a read deadline of the server passes, the
//     context is cancelled with the cause of the request's context, and the handler's answer is
//     sent as it would be without limits. The limits still apply to a handler that ignores this.
//  3. Every client learns the outcome. A response is out when the handler has flushed it, has written more than 2 KiB
//     of it, has sent a file by ReadFrom, or has hijacked the connection. Until then it is held in a buffer, as in
//     net/http. 1xx responses do not count. A response to a request with an Expect header is out as soon as it has
//     begun. When a limit fires before the response is out, the client gets 503 with a Retry-After in its place. When a
//     limit fires later, everything that was written is sent, and the connection is cut, or the stream reset, so that
//     no client mistakes half a response for a complete one. A connection whose end would complete the response, as
//     under HTTP/1.0, is reset.
//  4. After a limit, calls of the handler on its ResponseWriter fail with [http.ErrHandlerTimeout] and reach no client;
//     after an abort, the error says so. The ResponseWriter of the server is never used after ServeHTTP has returned,
//     even if the handler never returns.
//  5. A panic of the handler becomes a panic of ServeHTTP, with the same value if that is an error, such as
//     [http.ErrAbortHandler]. If the handler panics after a limit, and no part of the response was out, the client
//     still gets the 503, and the panic is written to the server's ErrorLog, as net/http does.
//  6. The ResponseWriter is an [http.Flusher], [http.Hijacker] or [http.Pusher] exactly if that of the server is. It
//     supports the methods of [http.ResponseController], and is an [io.ReaderFrom] that sends files as fast as that of
//     the server. It always implements http.CloseNotifier.
//  7. The temporary files of a multipart form are deleted when the handler has returned, even if it
//     was abandoned before.
//  8. The pattern that a mux inside the handler sets on the request is set on the caller's request when ServeHTTP
//     returns, unless the handler was abandoned. Enclosing middleware names its spans, logs and metrics after it.
//
// # Limits
//
// A hijacked connection belongs to the handler. The limits still apply and cancel the context, but
// transfers on the connection are heartbeats only through [heartbeat.Reader] and [heartbeat.Writer].
//
// Over HTTP/2 the server itself resets a stream when its WriteTimeout has passed, and no 503 is sent: the
// WriteTimeout must be longer than the limits.
//
// [http.MaxBytesReader] closes the connection only if it is given the server's ResponseWriter, and
// not if it is given that of this package or of any other middleware. A handler that refuses a body
// as too large, and wants the connection closed, sets "Connection: close" before it answers.
//
// If a slow client blocks a handler in a Write, ServeHTTP sets a write deadline to release the handler
// when it has to return. Every ResponseWriter of net/http supports write deadlines; one that does not
// would block ServeHTTP. Sending the rest of a response that is cut takes at most one second.
//
// If middleware copies the request between the [Handler] and the code that parses a multipart form, the form is
// hidden, and its files stay, as without this package.
package httptimeout
