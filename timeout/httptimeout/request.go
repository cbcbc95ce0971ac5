package httptimeout

import (
	"context"
	"net/http"
)

// The end of a request's context is one of two things. It is a limit, where a deadline has
// passed or a limit of an enclosing execution has fired: that ends the execution, as it does
// everywhere (SPEC 3.12). Or the connection has changed: the client has gone away,
// or has closed its sending half and waits for the answer, or a read deadline of the server has
// passed. Only the handler knows what that means for its answer, so its context is cancelled, and the
// execution goes on until the handler returns or a limit fires.
//
// The engine stops an execution when its caller's context ends, for whatever reason. So it gets a
// [limits], which ends for limits only, and withRequest adds the other reasons for the handler.

// A limits is a request's context that is done only when a limit has fired.
type limits struct {
	context.Context
	done chan struct{}
}

// limitsOf returns the limits of a request's context. The caller must call stop.
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

// withRequest returns the request for the handler. Its context is the execution's, and also ends with
// the context of r, with the same cause. The caller must call release when the handler has ended.
func withRequest(execution context.Context, r *http.Request) (request *http.Request, release func()) {
	ctx, cancel := context.WithCancelCause(execution)
	server := r.Context()
	tell := func() {
		if server.Err() != nil && !isLimit(server) {
			cancel(context.Cause(server))
		}
	}
	tell() // before the handler can ask
	stop := context.AfterFunc(server, tell)
	request = r.WithContext(ctx)
	return request, func() {
		stop()
		cancel(nil)
		// The server deletes the temporary files of a multipart form that is its own request's,
		// of which the handler's is a copy.
		if form := request.MultipartForm; form != nil && form != r.MultipartForm {
			_ = form.RemoveAll()
		}
	}
}
