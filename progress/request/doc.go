// Package request is a request as a client sees it: how long to wait for the answer, how
// progress renews that wait under a cap, what the error of a timeout says, and when to send
// the request again. It knows the rules of MCP clients and no SDK; the packages mcpsdk and
// mcpgo connect it to one each.
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
// [Retry] repeats a request that failed, with a [Backoff]. Whether a request is safe to repeat is for
// its caller to say: a tools/call is where the tool says so, and has an [IdempotencyKey] then.
//
// What is set once and is plain data, such as [Limits], [Call] and [Backoff], is a struct
// whose zero value is useful, and not a list of options.
//
// # Guarantees
//
//  1. A request ends at its Timeout or its MaxTotal, whichever comes first, or 250 ms after
//     that where the function that sends it does not come back.
//  2. MaxTotal is kept on time whether or not progress arrives and whether or not progress
//     renews the Timeout.
//  3. Progress renews the request that it belongs to, of the session that it came from, and no
//     other. A notification that comes after the request renews nothing and is no error.
//  4. A caller's own progress token comes back to its handler, also after the request.
//  5. Every stop is an [*Error]; context.DeadlineExceeded and context.Canceled tell a timeout
//     from the caller's cancellation, exactly one of the two, during a request and between two
//     tries alike.
package request
