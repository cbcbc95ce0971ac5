// Package request sends requests as an MCP client has to: with a limit on the wait for the answer,
// which progress renews under a cap, with errors that name the limit, and with retries. It knows no
// SDK; the packages mcpsdk and mcpgo each connect it to one.
//
// A [Limiter] has the limits, [Do] sends one request under them, and [Limiter.Progress] takes
// the progress notifications that come in meanwhile:
//
//	client := request.New(request.Limits{Timeout: request.DefaultTimeout}, request.DefaultLimits())
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
// [Retry] repeats a request, or an attempt to connect, that failed, with a [Backoff]. [TimedOut] and [Permanent] say
// after which errors that makes sense, and [Repeatable] for which methods. A tools/call is safe to repeat if the tool
// says so, which [Hints] remember; the request then has an [IdempotencyKey].
//
// [Options] are the settings of a client of an adapter. [Declarations] have what the server has declared, and [Polls] says
// when a client asks for a task again.
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
