// Package request is what the adapters of both MCP SDKs do with a request of a client
// (SPEC 8): find its limits, give it a progress token, run it under them, and say what
// happened if one fired.
//
// An adapter makes one [Client] for each client of its SDK, sends each request through
// [Do], and hands each progress notification to [Client.Progress] before anything that
// can be slow.
//
//	client := request.New(defaults, perMethod)
//	// sending
//	res, err := request.Do(ctx, client, request.Call{Session: s, Method: m, Token: own},
//		func(ctx context.Context, token string) (Result, error) {
//			if token != "" {
//				params = clone(params) // they are the caller's
//				params.SetProgressToken(token)
//			}
//			return next(ctx, params)
//		})
//	// receiving notifications/progress
//	own, wanted := client.Progress(s, params.ProgressToken)
//	if wanted {
//		params.ProgressToken = own
//		handler(params)
//	}
package request
