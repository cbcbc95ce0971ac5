package httptimeout_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// A handler is distinguished from a tool, and options have the last word.
func TestOperation(t *testing.T) {
	for name, tc := range map[string]struct {
		options []timeout.Option
		want    timeout.Operation
	}{
		"a handler": {nil, timeout.OperationHandler},
		"a tool":    {[]timeout.Option{timeout.WithOperation(timeout.OperationTool)}, timeout.OperationTool},
	} {
		t.Run(name, func(t *testing.T) {
			got := timeout.Operation(255)
			h := httptimeout.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = timeout.FromContext(r.Context()).Snapshot().Operation
			}), tc.options...)
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			if got != tc.want {
				t.Errorf("it is a %v, want %v", got, tc.want)
			}
		})
	}
}

// The route that an inner mux has found is known to outer middleware, which names its
// measurements after the pattern. A handler that was abandoned may still be looking for it.
func TestPattern(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"in time":   {func(http.ResponseWriter, *http.Request) {}, "GET /files/{name}"},
		"stopped":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "GET /files/{name}"},
		"abandoned": {func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }, ""},
		"panics":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "GET /files/{name}"},
		"stopped, panics": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}, "GET /files/{name}"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := http.NewServeMux()
				mux.HandleFunc("GET /files/{name}", tc.handler)
				r := httptest.NewRequestWithContext(context.Background(), "GET", "/files/a", nil)
				func() {
					defer func() { _ = recover() }()
					httptimeout.New(mux, timeout.Config{Idle: time.Second, Grace: time.Second}).ServeHTTP(httptest.NewRecorder(), r)
				}()
				if r.Pattern != tc.want {
					t.Errorf("the pattern is %q, want %q", r.Pattern, tc.want)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
