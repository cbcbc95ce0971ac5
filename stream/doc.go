// Package stream finds out that a stream has gone silent: the body of a response, a
// notification stream, a connection. Each chunk renews an idle limit, and there is no
// total, so a stream may live for as long as it has something to say.
//
//	body := stream.Body(ctx, resp.Body, time.Minute)
//	defer body.Close()
//	_, err = io.Copy(file, body) // errors.Is(err, timeout.ErrIdle) after a minute of silence
//
// [Transport] does that to every exchange of an http.Client. [Notifications] also reopens
// event streams; it is what an MCP client wants:
//
//	&http.Client{Transport: &stream.Notifications{Idle: time.Minute, GiveUp: time.Hour, Logger: logger}}
//
// Both are configured by fields, as http.Transport is.
//
// # With the MCP SDKs
//
// Both SDKs take an http.Client. With a [Notifications] in it, the stream that they open
// for the server's notifications is one stream to them, whatever becomes of its
// connections, and their own ways to reopen it stay unused. Those are not enough: the
// official SDK closes the whole session after five reopened streams on which no event
// with an id has come, so an idle limit alone would end the session of a server that has
// nothing to say; and mcp-go does not say where it was when it listens again, so what was
// sent meanwhile is lost even where the server has kept it. When the server refuses, or
// the stream is given up, the reader has the error, and the SDK does what it does about that.
//
// Calls are not touched: they are POST requests, and have the limits of requests. A
// [Transport] under an SDK would touch them: each chunk of an answer, be it a comment, is a
// heartbeat of the request that is made under mcpsdk.Limit or its like (guarantee 4), whose
// Timeout a server could then put off for ever without progress. Nor is
// subscriptions/listen, which takes the place of that stream in protocol 2026-07-28: it
// is a POST like any other.
//
// # Guarantees
//
//  1. A Read that waits for the idle limit without a byte closes the stream and returns a
//     *timeout.Error of timeout.KindIdle, not a nanosecond before. Bytes that come at or after
//     that instant are too late to renew it.
//  2. Only the wait for bytes counts. Between two reads the limit rests.
//  3. A read of no bytes is no chunk.
//  4. A chunk is also a heartbeat of the execution around, whose own limits are as they
//     would be without this package.
//  5. A reopened stream yields each whole event that came, in order, and nothing of one
//     that was cut off. With a server that keeps events and assigns ids, none after
//     the first is lost, and none comes twice.
//  6. The deadline of a request does not end a notification stream; cancelling the
//     request does, at any time.
//  7. Only a GET that asked for an event stream and got one is ever sent again.
//  8. A stream that has ended, failed, been stopped or been closed leaves nothing behind:
//     no goroutine, no timer. No read starts a goroutine.
//  9. Requests are not changed; contexts, trailers and upgraded connections work as
//     without the package.
//  10. The loss of an event stream and each attempt to reopen it are reported to the hooks
//     and the logger. Where GiveUp is set, Read returns an *OutageError after that time
//     without a connection, or at the end of the attempt that is under way then.
package stream
