package httptimeout

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

// DefaultRetryAfter is what a client is asked to wait for where [Handler.RetryAfter] is 0.
const DefaultRetryAfter = 10 * time.Second

// A Handler runs another under limits. It is made by [New]; its fields may be set before the
// first request. It is safe for concurrent use.
type Handler struct {
	// Handler is what runs.
	Handler http.Handler
	// Options are those of the executions: their limits, a logger, hooks. Without a Config the
	// limits are the process default. The name of an execution is the pattern of the request,
	// such as "GET /export", unless timeout.WithName says another.
	Options []timeout.Option
	// RetryAfter is what the client is asked to wait for after a 503, rounded up to a second.
	// 0 is DefaultRetryAfter; where it is negative, there is no such header.
	RetryAfter time.Duration
	// Stopped writes the response of a handler that was stopped before any of its own was out.
	// If it is nil, that is a 503 with the message of the error, and a Retry-After. w has the
	// header as it was before the handler ran.
	Stopped func(w http.ResponseWriter, r *http.Request, err *timeout.Error)
}

// New returns h under limits. It panics if h is nil.
func New(h http.Handler, opts ...timeout.Option) *Handler {
	if h == nil {
		panic("httptimeout: nil handler")
	}
	return &Handler{Handler: h, Options: opts}
}

// ServeHTTP runs the handler until it has returned, or, at the latest, until a grace after a
// limit has fired or the request was cancelled; see [timeout.Config].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rw := newWriter(w)
	defer rw.close() // also where the handler panics
	opts := make([]timeout.Option, 0, len(h.Options)+1)
	opts = append(append(opts, timeout.WithName(r.Pattern)), h.Options...)
	err := timeout.Run(r.Context(), func(ctx context.Context) error {
		rw.ctx = ctx
		defer context.AfterFunc(ctx, rw.interrupt)()
		request := r.WithContext(ctx)
		if r.Body != nil && r.Body != http.NoBody {
			b := &body{ReadCloser: r.Body, writer: rw}
			request.Body = b
			defer context.AfterFunc(ctx, b.interrupt)()
		}
		h.Handler.ServeHTTP(rw.as(), request)
		return nil
	}, opts...)

	unused := rw.close()
	switch stop := (*timeout.Error)(nil); {
	case err == nil:
		rw.finish()
	case !unused || !errors.As(err, &stop):
		// The latter is runtime.Goexit, after which net/http closes the connection too.
		panic(http.ErrAbortHandler)
	case h.Stopped != nil:
		h.Stopped(w, r, stop)
	default:
		if after := h.retryAfter(); after > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(after, 10))
		}
		http.Error(w, stop.Error(), http.StatusServiceUnavailable)
	}
}

// retryAfter is in seconds.
func (h *Handler) retryAfter() int64 {
	after := h.RetryAfter
	if after == 0 {
		after = DefaultRetryAfter
	}
	seconds := int64(after / time.Second)
	if after%time.Second > 0 {
		seconds++
	}
	return seconds
}
