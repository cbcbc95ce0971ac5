// Package stream detects streams that have gone silent: the body of a response, a notification stream, a connection.
// Each chunk renews an idle limit, and there is no total, so a stream may live for as long as the peer keeps sending.
//
//	body := stream.Body(ctx, resp.Body, time.Minute)
//	defer body.Close()
//	_, err = io.Copy(file, body) // errors.Is(err, timeout.ErrIdle) after a minute of silence
//
// [Transport] limits every exchange of an http.Client in this way. It can have a separate limit for the first event,
// and a function that decides which events are signs of life. [Models] returns a Transport for the streams of language
// models, which stops a stuck stream even if keep-alives still come:
//
//	client := anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: stream.Models()}))
//
// A server sends keep-alives on its quiet streams with [KeepAlive]. [Notifications] also reopens
// event streams, and is meant for MCP clients:
//
//	&http.Client{Transport: &stream.Notifications{Idle: time.Minute, GiveUp: time.Hour, Logger: logger}}
//
// Transport and Notifications are configured by fields, like http.Transport.
//
// # Notification streams
//
// A stream of [Notifications] is reopened when it goes silent, ends or fails, after the delays of its Backoff. The
// delays start again from the first after a chunk, and also after a silence, because a stream that was open for the
// whole limit was no failed attempt. The server's retry field sets the first delay, between 100 ms and Backoff.Max.
//
// To reopen the stream, the first request is sent again with the ID of the last whole event as Last-Event-ID. After a
// status of 400 the next attempt omits that header, because MCP servers answer 400 if they no longer keep the events
// after that ID. Any other status except 408, 409, 425, 429, and 5xx other than 501 is a refusal that ends the stream,
// and so is a response that is not an event stream. An unreachable server is retried for ever, unless GiveUp is set.
//
// When the client ends its session, with a DELETE that passes through a Notifications, the end of
// the session's streams is not a loss, and is not reported.
//
// A stream that begins with an event named "endpoint" belongs to MCP's older transport, HTTP with SSE. There the
// session ends with the stream, and a new stream would be a new, uninitialised session. Such a stream therefore has
// the idle limit but is not reopened, and its server should send something at shorter intervals than the limit. The
// answers to calls come on this stream, too.
//
// # With the MCP SDKs
//
// Both SDKs accept an http.Client. With a [Notifications] in it, the SDK reads the server's notification stream as one
// stream and never has to reopen it. The official SDK would close the whole session after five reopened streams without
// an event that has an ID, and mcp-go would lose events, because it does not send the ID of the last one. If the server
// refuses to reopen the stream, or GiveUp has passed, the reader gets the error and the SDK handles it as usual.
//
// Calls, and subscriptions/listen of protocol 2026-07-28, are POST requests, which Notifications does not affect. A
// [Transport] under an SDK would: each chunk of an answer, even a comment, is a heartbeat of the request made under
// mcpsdk.Limit or a similar function (guarantee 4), so a server could extend that request's Timeout for ever without
// progress.
//
// # Guarantees
//
//  1. A Read that waits for the idle limit without a sign of life closes the stream and returns a [*SilenceError], not
//     a nanosecond early. Bytes that come at or after that instant are too late to renew the limit.
//  2. Only the wait for bytes counts. The limit does not run between two reads.
//  3. A read of no bytes is not a chunk. Every chunk is a sign of life, unless the Life of a
//     [Transport] decides otherwise.
//  4. A sign of life is also a heartbeat of the enclosing execution. Otherwise that execution's limits
//     are not affected.
//  5. A reopened stream yields each whole event that came, in order, and no part of an event that was cut off. If the
//     server keeps events and assigns ids, no event after the first is lost, and none is repeated.
//  6. The deadline of a request does not end a notification stream. Cancelling the request ends it at any time.
//  7. Only a GET that asked for an event stream and got one is ever sent again.
//  8. A stream that has ended, failed, been stopped or been closed leaves no goroutine and no timer
//     behind. No read starts a goroutine.
//  9. Requests are not changed. Contexts, trailers and upgraded connections work as they do without the package.
//  10. The loss of an event stream and each attempt to reopen it are reported to Report and the
//     logger. If GiveUp is set, Read returns an *OutageError after that time without a connection,
//     or at the end of the attempt that is in progress at that time.
//  11. Bytes that have come are returned before the error of the stream, whether or not they are a
//     sign of life.
package stream
