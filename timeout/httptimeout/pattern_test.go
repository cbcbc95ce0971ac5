package httptimeout_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tooldeadline/tooldeadline/timeout"
)

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
					limited(mux, timeout.Config{Idle: time.Second, Grace: time.Second}).ServeHTTP(httptest.NewRecorder(), r)
				}()
				if r.Pattern != tc.want {
					t.Errorf("the pattern is %q, want %q", r.Pattern, tc.want)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
