package httptimeout

import (
	"context"
	"net/http"
)

// The context of a request ends for one of two reasons. Either a deadline or a limit of an enclosing execution has
// been reached: that ends the execution, as in every other use (SPEC 3.12). Or the connection has changed: the client
// has gone away, or has closed its sending half and waits for the answer, or a read deadline of the server has
// passed. Only the handler knows how that affects its answer, so its context is cancelled, and the execution goes on
// until the handler returns or a limit fires.
//
// Package timeout stops an execution when its caller's context ends, for whatever reason. So it gets a [limits],
// which ends at limits only, and withRequest adds the other reasons to the handler's context.

// A limits is a request's context that ends only when a limit has fired.
type limits struct {
	context.Context
	done chan struct{}
}

// limitsOf returns the limits of a request's context. The caller must call stop when the execution has ended.
func limitsOf(request context.Context) (ctx limits, stop func() bool) {
	ctx = limits{request, make(chan struct{})}
	return ctx, context.AfterFunc(request, func() {
		if ctx.Err() != nil {
			close(ctx.done)
		}
	})
}

func (c limits) Done() <-chan struct{} { return c.done }

func (c limits) Err() error {
	if isLimit(c.Context) {
		return c.Context.Err()
	}
	return nil
}

func isLimit(ctx context.Context) bool { return ctx.Err() == context.DeadlineExceeded }

// withRequest returns the request for the handler. Its context is the execution's, and also ends with the context of
// r, with the same cause, unless that has reached its deadline, which is a limit of the execution. The caller must call
// release when the handler has ended.
func withRequest(execution context.Context, r *http.Request) (request *http.Request, release func()) {
	ctx, cancel := context.WithCancelCause(execution)
	server := r.Context()
	tell := func() {
		if server.Err() != nil && !isLimit(server) {
			cancel(context.Cause(server))
		}
	}
	tell() // before the handler can read the context
	stop := context.AfterFunc(server, tell)
	request = r.WithContext(ctx)
	return request, func() {
		stop()
		cancel(nil)
		// The server deletes only the temporary files of a multipart form in its own request, of which the handler's
		// is a copy.
		if form := request.MultipartForm; form != nil && form != r.MultipartForm {
			_ = form.RemoveAll()
		}
	}
}
