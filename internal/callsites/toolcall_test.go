package callsites_test

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/tooldeadline/tooldeadline/internal/callsites"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// callOf makes a call of a tool that takes as long as work, under limits of a second, and then shuts its server down,
// for which a call that was answered does not keep it waiting.
func callOf(s *Site, c toolcall.Call, work time.Duration, h func(context.Context) error) (err error) {
	var drain toolcall.Drain
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := drain.Shutdown(ctx); err != nil {
			s.Error(err)
		}
	}()
	settings := &toolcall.Settings{Limits: &timeout.Config{Total: idle, Grace: grace}}
	_, err = toolcall.Do(drain.Context(context.Background()), settings, c, func(ctx context.Context) (int, error) {
		time.Sleep(work)
		return 0, h(ctx)
	})
	return err
}

func init() {
	good := func(context.Context) error { return nil }
	const never = "only types that JSON decodes to are looked at"
	for way, h := range map[string]func(*Site) http.HandlerFunc{
		"panic": func(s *Site) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(asking{s}) }
		},
		"log": func(*Site) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(201) }
		},
		"log of a panic": func(*Site) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic("the handler's") }
		},
	} {
		add(Table{"httptimeout.Handler.Handler/" + way: {Within: told + 2*patience, Do: func(s *Site) {
			defer func() { _ = recover() }() // the handler's
			server := &http.Server{ErrorLog: log.New(code{s, nil}, "", 0)}
			r := httptest.NewRequestWithContext(context.WithValue(context.Background(), http.ServerContextKey, server), http.MethodGet, "/", nil)
			rec := httptest.NewRecorder()
			(&httptimeout.Handler{Handler: h(s), Limits: &timeout.Config{Total: idle, Grace: grace}}).ServeHTTP(rec, r)
			if strings.HasSuffix(way, "panic") && rec.Code != http.StatusServiceUnavailable {
				s.Errorf("the answer is %d", rec.Code)
			}
		}}})
	}
	add(Table{
		"toolcall.Do(h)": {Within: within, Do: func(s *Site) {
			_ = callOf(s, toolcall.Call{}, 0, func(ctx context.Context) error { s.Hit(ctx); return nil })
		}},
		// Its methods are called under the limits before anybody else calls them, who would have to wait.
		"toolcall.Do(h)/error": {Within: within, Do: func(s *Site) {
			err := callOf(s, toolcall.Call{}, 0, func(context.Context) error { return asking{s} })
			_ = err.Error() // so the error of a call is one that can be asked
		}},
		"toolcall.Call.Answered": {Waits: "Do waits for it", Panics: true, Do: func(s *Site) {
			_ = callOf(s, toolcall.Call{Answered: func(leave func()) { s.Hit(nil); leave() }}, 0, good)
		}},
		"toolcall.Call.NearLimit": {Within: idle, Waits: "Do waits for it", Panics: true, Do: func(s *Site) {
			_ = callOf(s, toolcall.Call{NearLimit: func(toolcall.Outcome) { s.Hit(nil) }}, idle*99/100, good)
		}},
		"toolcall.Call.Arguments":            {Never: never},
		"toolcall.Call.Meta":                 {Never: never},
		"toolcall.Call.Token":                {Never: "one with methods of its own is refused; TestTokensRunNoCode"},
		"toolcall.CancelledError.Is(target)": {Never: "it is compared with errors of the package"},
		"httptimeout.Handler.Stopped": {Within: within, Waits: "ServeHTTP waits for Stopped", Panics: true, Do: func(s *Site) {
			h := &httptimeout.Handler{
				Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
				Limits:  &timeout.Config{Total: idle, Grace: grace},
				Stopped: func(http.ResponseWriter, *http.Request, *timeout.Error) { s.Hit(nil) },
			}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		}},
	})
}
