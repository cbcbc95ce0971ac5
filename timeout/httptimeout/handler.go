package httptimeout

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// A Handler runs another handler under limits. Its fields may be set before the first request. It is
// safe for concurrent use.
type Handler struct {
	// Handler is the handler that runs under limits. ServeHTTP panics if it is nil.
	Handler http.Handler
	// Limits are the limits of each request; nil means the process default. A limit of 0 is off.
	Limits *timeout.Config
	// Settings are the options of each execution, such as a logger and hooks. The name of an execution is the pattern
	// of the request, such as "GET /export", unless timeout.WithName is given. If the Handler wraps a whole mux, the
	// pattern is not known yet and there is no name. nil means no options. If an option makes timeout.Run refuse the
	// call, as timeout.Refuse does, the client gets a 500, and the error is written to the server's ErrorLog.
	Settings []timeout.Setting
	// If RequestTimeout is true, the header Request-Timeout of a request, a number of seconds above 0, sets a
	// deadline for the request: the time for which the client waits. The deadline only shortens the total. A header
	// that is not such a number is ignored.
	RequestTimeout bool
	// Stopped writes the response if the handler was stopped before its response was out, or was not called because
	// the time of the request was over. w has the header from before the call of the handler. If the deadline of the
	// request had already passed when the request arrived, the Limit of err is 0. ServeHTTP waits for Stopped. nil
	// means a 503 with a Retry-After of 10 s and a text for people, such as "The request timed out: there was no progress
	// for 30 s."
	Stopped func(w http.ResponseWriter, r *http.Request, err *timeout.Error)
}

// ServeHTTP runs the handler. It returns when the handler has returned, and no later than a grace after a limit has
// fired or the execution was aborted; see [timeout.Config]. Hooks, log handlers and Stopped may delay it further,
// and sending the rest of a response that is cut may take another second. If the client goes away, or the request's
// context is cancelled otherwise than by a deadline or a limit, the handler's context is cancelled with the same
// cause, and ServeHTTP still waits for the handler or a limit. ServeHTTP panics with http.ErrAbortHandler to cut a
// response, and passes on a panic of the handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rw := newWriter(w, r)
	panicking := true
	called, late, route := false, false, "" // these belong to the handler's goroutine until it ends
	defer func() {
		if panicking {
			if route != "" {
				r.Pattern = route
			}
			rw.close()
			if late {
				rw.cut()
			}
		}
	}()
	opts := append(make([]timeout.Option, 0, len(h.Settings)+3), timeout.WithName(r.Pattern), timeout.WithOperation(timeout.OperationHandler))
	if h.Limits != nil {
		opts = append(opts, *h.Limits)
	}
	for _, s := range h.Settings {
		opts = append(opts, s)
	}
	caller, release := r.Context(), func() {}
	if h.RequestTimeout {
		caller, release = withDeadline(caller, r.Header)
	}
	defer release()
	ctx, forget := limitsOf(caller)
	defer forget()
	pattern, err := timeout.Do(ctx, func(ctx context.Context) (pattern string, err error) {
		rw.ctx, called = ctx, true
		defer func() {
			if late = ctx.Err() != nil; late && rw.replaceable() {
				err = asError(recover()) // otherwise Do would panic, and the client would get no answer
			}
			pattern = route
		}()
		h.serve(ctx, rw, r, &route)
		return route, nil
	}, opts...)
	panicking = false

	// An inner mux has set the pattern on the copy of the request. Outer middleware, which names its spans and
	// metrics after the pattern, has the original. After an abandonment the pattern is not copied, because the
	// handler may still be setting it.
	if pattern != "" {
		r.Pattern = pattern
	}

	unused := rw.close()
	stop, stopped := err.(*timeout.Error)
	panicked, _ := err.(*timeout.PanicError)
	switch {
	case err == nil:
		rw.finish()
	case panicked != nil: // returned because of WithRecover, which is for callers of Run
		if value, ok := panicked.Value.(error); ok {
			panic(value)
		}
		panic(panicked)
	case !stopped && !called: // the error is that of an option such as Refuse
		texts.Ask(func() { logf(r, "http: refused %v: %v", r.RemoteAddr, texts.Part(err)) })
		rw.allowAnswer()
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	case !stopped: // runtime.Goexit
		panic(http.ErrAbortHandler)
	case !unused:
		rw.cut()
		panic(http.ErrAbortHandler)
	default:
		logPanic(r, stop.Err)
		rw.allowAnswer()
		h.answer(w, r, stop)
	}
}

// serve calls the handler, and sets *route to the pattern of the request after that, even if the handler panics.
func (h *Handler) serve(ctx context.Context, rw *writer, r *http.Request, route *string) {
	defer context.AfterFunc(ctx, rw.interrupt)()
	request, release := withRequest(ctx, r)
	defer release()
	rw.handlerCtx = request.Context()
	if r.Body != nil && r.Body != http.NoBody {
		b := &body{ReadCloser: r.Body, ctx: ctx, control: rw.control}
		request.Body = b
		defer context.AfterFunc(ctx, b.interrupt)()
	}
	defer func() { *route = request.Pattern }()
	h.Handler.ServeHTTP(rw.withOptional(), request)
}

// asError returns the error for a panic of the handler, or nil if v is nil.
func asError(v any) error {
	if v == nil {
		return nil
	}
	inner := new(*timeout.PanicError)
	if err, ok := v.(error); ok && texts.Ask(func() { errors.As(err, inner) }) && *inner != nil {
		return *inner // the panic of a nested execution, with its stack
	}
	return &timeout.PanicError{Value: v, Stack: debug.Stack()}
}

// answer sends the response in place of the handler's: with Stopped or, if that is nil, a 503.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, stop *timeout.Error) {
	if h.Stopped != nil {
		h.Stopped(w, r, stop)
		return
	}
	w.Header().Set("Retry-After", "10")
	http.Error(w, message(stop), http.StatusServiceUnavailable)
}

// message returns the text of a 503. It is for clients, who know neither tools nor heartbeats, and omits the cause,
// which may be internal.
func message(stop *timeout.Error) string {
	limit := stop.Limit
	if stop.Cause != nil {
		limit = max(limit.Round(time.Millisecond), time.Millisecond) // the time left until a deadline (SPEC 3.3)
	}
	seconds := strconv.FormatFloat(limit.Seconds(), 'f', -1, 64) + " s"
	switch {
	case stop.Kind == timeout.ErrIdle:
		return "The request timed out: there was no progress for " + seconds + "."
	case stop.Kind == timeout.ErrAborted:
		return "The request was stopped by the server."
	case stop.Limit == 0: // the deadline had passed (SPEC 3.12)
		return "The request was not started: its deadline had passed."
	}
	return "The request timed out after " + seconds + "."
}
