package httptimeout_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// A hostile is an error and a log each of whose methods does what the test wants.
type hostile struct{ do func() }

func (h *hostile) Error() string             { h.do(); return "hostile" }
func (h *hostile) Is(error) bool             { h.do(); return false }
func (h *hostile) As(any) bool               { h.do(); return false }
func (h *hostile) Unwrap() error             { h.do(); return nil }
func (h *hostile) Write([]byte) (int, error) { h.do(); return 0, errors.New("hostile") }

// SPEC 3.24: the value of a handler's panic, the server's log and the cause of the request's end keep no response
// from the client, whatever their methods do.
func TestHostileValues(t *testing.T) {
	for how, do := range map[string]func(release chan struct{}){
		"block":  func(release chan struct{}) { <-release },
		"panic":  func(chan struct{}) { panic("hostile") },
		"Goexit": func(chan struct{}) { runtime.Goexit() },
	} {
		for where, serve := range map[string]func(h *hostile, cancel context.CancelCauseFunc) http.HandlerFunc{
			"panic": func(h *hostile, _ context.CancelCauseFunc) http.HandlerFunc {
				return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(h) }
			},
			"log": func(*hostile, context.CancelCauseFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(201) }
			},
			"log of a panic": func(*hostile, context.CancelCauseFunc) http.HandlerFunc {
				return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic("the handler's") }
			},
			"cause": func(h *hostile, cancel context.CancelCauseFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					cancel(h)
					<-r.Context().Done()
					_, _ = w.Write([]byte("x"))
				}
			},
		} {
			t.Run(where+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					h := &hostile{func() { do(release) }}
					ctx, cancel := context.WithCancelCause(t.Context())
					server := &http.Server{ErrorLog: log.New(h, "", 0)}
					ctx = context.WithValue(ctx, http.ServerContextKey, server)
					rec := httptest.NewRecorder()
					begun := time.Now()
					served := make(chan struct{})
					go func() {
						defer close(served)
						defer func() { _ = recover() }()
						httptimeout.New(serve(h, cancel), timeout.Config{Total: time.Second, Grace: time.Second}).
							ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
					}()
					hung := time.AfterFunc(5*time.Second, func() { t.Error("no response"); close(release) })
					<-served
					if took := time.Since(begun); took > 4*time.Second {
						t.Errorf("after %v", took)
					}
					if hung.Stop() {
						close(release)
					}
					if where == "panic" || where == "log of a panic" {
						if rec.Code != 503 {
							t.Errorf("the answer is %d", rec.Code)
						}
					}
					time.Sleep(time.Minute)
				})
			})
		}
	}
}
