package httptimeout

import (
	"log"
	"net/http"
	"path"
	"reflect"
	"runtime"
	"strings"

	"github.com/tooldeadline/tooldeadline/internal/texts"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// logf writes a record that net/http would write if the handler were not supervised, to the same place: the server's
// ErrorLog, or else the standard logger. If r comes from no server, logf does nothing.
func logf(r *http.Request, format string, args ...any) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	switch {
	case server == nil:
	case server.ErrorLog != nil:
		server.ErrorLog.Printf(format, args...)
	default:
		log.Printf(format, args...)
	}
}

// logPanic logs the panic of a stopped handler whose response is replaced, unless it is http.ErrAbortHandler. If a
// method of the panic's value or the log blocks, logPanic returns after a second.
func logPanic(r *http.Request, err error) {
	if p, ok := err.(*timeout.PanicError); ok && p.Value != http.ErrAbortHandler {
		texts.Ask(func() { logf(r, "http: panic serving %v: %v\n%s", r.RemoteAddr, texts.Part(p.Value), p.Stack) })
	}
}

// us is the prefix of the names of this package's functions. The names of functions that the compiler generates
// contain it, too.
var us = reflect.TypeFor[writer]().PkgPath() + "."

// complain logs a mistake of the handler, with the place of the handler's call. The server would log a place in this
// package. Over HTTP/2 net/http logs none of these mistakes, and so complain does nothing.
func (w *writer) complain(mistake string) {
	if w.request.ProtoMajor >= 2 {
		return
	}
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	for {
		frame, more := frames.Next()
		if between := strings.Contains(frame.Function, us) || strings.HasPrefix(frame.Function, "net/http."); !between || !more {
			logf(w.request, "http: %s from %s (%s:%d)", mistake, frame.Function, path.Base(frame.File), frame.Line)
			return
		}
	}
}
