// Package request sends the requests of an MCP client: with a limit on the wait for the answer, which progress renews
// up to a maximum, with errors that name the limit, and with retries. It depends on no SDK; the packages mcpsdk and
// mcpgo each connect it to one.
//
// A [Limiter] holds the limits, [Do] sends one request under them, and [Limiter.Progress] receives the progress
// notifications that arrive meanwhile:
//
//	client := request.New(nil)
//
//	// sending
//	res, err := request.Do(ctx, client, request.Call{Session: conn, Method: "tools/call", Token: own},
//		func(ctx context.Context, token string) (Result, error) {
//			if token != "" {
//				params = params.withToken(token)
//			}
//			return conn.roundTrip(ctx, params)
//		})
//
//	// receiving notifications/progress
//	if own, wanted := client.Progress(conn, params.ProgressToken); wanted {
//		params.ProgressToken = own
//		handle(params)
//	}
//
// [Retry] repeats a failed request, or a failed attempt to connect, with a [Backoff]. [TimedOut] and [Permanent]
// classify the errors, and [Repeatable] the methods. A tools/call is safe to repeat if the tool has a hint that says
// so, which [Hints] records; the request then has an [IdempotencyKey].
//
// [Options] holds the settings of a client of an adapter. [Declarations] records the limits that the server has
// declared, and [Polls] computes when a client polls a task.
//
// # Guarantees
//
//  1. A request ends at its Timeout or its MaxTotal, whichever comes first, or 250 ms after that if
//     the function that sends it does not return.
//  2. MaxTotal is kept on time whether or not progress arrives and whether or not progress
//     renews the Timeout.
//  3. Progress renews the request that it belongs to, of the session that it came from, and no
//     other. A notification that comes after the request renews nothing and is not an error.
//  4. The caller's handler gets the progress token that the caller has set, even after the request
//     has ended.
//  5. The error of a request that was stopped, during the request or between two tries, is an
//     [*Error]. It matches either context.DeadlineExceeded, for a timeout, or context.Canceled, for
//     a cancellation by the caller, and never both.
//  6. A handler of notifications that is slow, or ends its goroutine with runtime.Goexit, delays no renewal of a limit and
//     no answer ([Limiter.Handlers]).
//  7. Nothing is repeated that is not safe to repeat. A tools/call is safe if the caller says so
//     and [Hints] has the tool.
package request
