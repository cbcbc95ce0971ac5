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

// logf logs what net/http itself would log if the handler were not supervised, and where it would:
// to the server's ErrorLog, or else the standard logger. Without a server it logs nothing.
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

// logPanic logs a panic of a stopped handler whose client is answered in its place. Neither the panic's value nor
// the log keeps the answer for longer than a moment.
func logPanic(r *http.Request, err error) {
	if p, ok := err.(*timeout.PanicError); ok && p.Value != http.ErrAbortHandler {
		texts.Ask(func() { logf(r, "http: panic serving %v: %v\n%s", r.RemoteAddr, texts.Part(p.Value), p.Stack) })
	}
}

// us occurs in the names of all functions of this package, including those that the compiler makes.
var us = reflect.TypeFor[writer]().PkgPath() + "."

// complain logs a mistake of the handler with the handler's line. The server, if it were called, would
// log our line. Over HTTP/2 net/http logs none of these mistakes.
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
