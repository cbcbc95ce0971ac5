package callsites_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// serve has h answer one request.
func serve(h http.Handler) {
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/", nil))
}

func init() {
	const (
		handedOn = "it is handed on as it is; its text is made as that of heartbeat.BeatWith(detail) is"
		byType   = "only its type is looked at, and the value of a JSON number or text"
		adapters = "only adapters call it, with errors and values of their SDK"
		byFmt    = "package fmt calls it on the goroutine of whoever formats the error"
	)
	add(Table{
		"httptimeout.Handler.Handler": {Within: told, Panics: true, Do: func(s *Site) {
			serve(&httptimeout.Handler{
				Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { s.Hit(r.Context(), own(r.Context())) }),
				Limits:  &timeout.Config{Idle: idle, Grace: grace},
			})
		}},
		"httptimeout.Transport.Base":         {Never: "net/http calls it by Transport, as it would without"},
		"httptimeout.Transport.RoundTrip(r)": {Never: "it is handed on to Base"},
		"httptimeout.Handler.ServeHTTP(r)":   {Never: "the body of a request is the server's; reading it is what the handler does"},
		"httptimeout.Handler.ServeHTTP(w)":   {Never: "a writer of the server's, which supports write deadlines, as the package says"},
		"inspect.Options.Allow": {Waits: "waits for Allow", Panics: true, Do: func(s *Site) {
			serve(inspect.Handler(inspect.Options{Allow: func(*http.Request) bool { s.Hit(context.Background()); return true }}))
		}},
		"policy.Policy.Lookup": {Waits: "A call waits for it", Panics: true, Do: func(s *Site) {
			_, _ = (&policy.Policy{Lookup: func(string) (string, bool) { s.Hit(context.Background()); return "", false }}).Resolve("scan", 0)
		}},
		"policy.Policy.Logger": {Waits: "waits for it", Panics: true, Do: func(s *Site) {
			_, _ = (&policy.Policy{Logger: logger(s), Tools: map[string]policy.Tool{"scan": {MaxTotal: -1}}}).Resolve("scan", time.Minute)
		}},
		"timeout.FromEnv(lookup)": {Waits: "waits for lookup", Panics: true, Do: func(s *Site) {
			_, _, _ = timeout.FromEnv(func(string) (string, bool) { s.Hit(context.Background()); return "", false })
		}},

		"policy.ReadDeclaration(under)": {Never: byType},
		"policy.Requested(v)":           {Never: byType},
		"adapter.Unmarshal(v)":          {Never: adapters},
		"tasktest.TestStore(open)":      {Never: "a test of the program's calls it"},
		"timeout.Clock.Now":             {Never: "WithClock: a clock is the hand of a test, and the time of the limits themselves"},
		"timeout.Timer.Reset":           {Never: "of a timeout.Clock"},
		"timeout.Timer.Stop":            {Never: "of a timeout.Clock"},
		"timeout.Clock.AfterFunc":       {Never: "WithClock: a clock is the hand of a test, and the time of the limits themselves"},
		"timeout.ConfigError.Format(s)": {Never: byFmt},
		"timeout.Error.Format(s)":       {Never: byFmt},
		"timeout.PanicError.Format(s)":  {Never: byFmt},
		"timeout.PanicError.Value":      {Never: handedOn},
		"timeout.Error.Cause":           {Never: handedOn},
		"timeout.Figures.Detail":        {Never: handedOn},
		"timeout.Error.Err":             {Never: handedOn},
		"timeout.Error.Result":          {Never: handedOn},
		"timeout.Snapshot.Err":          {Never: handedOn},
		"timeout.Error.Is(target)":      {Never: "targets are compared by identity"},
		"timeout.Refuse(err)":           {Never: "the error is returned as it is"},
	})
}
