package httptimeout_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/httptimeout"
)

// A handler that tries to write when it has been stopped, and is refused, has no write under
// way: the response is the 503, and nothing of the connection is cut.
func TestRefusedWriteIsNoneToInterrupt(t *testing.T) {
	for range 1000 {
		h := httptimeout.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timeout.FromContext(r.Context()).Abort(nil)
			<-r.Context().Done()
			for range 50 {
				_, _ = w.Write([]byte("too late"))
			}
		}), timeout.Config{})
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Fatalf("aborted: %v", v)
				}
			}()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		if w.Code != http.StatusServiceUnavailable {
			t.Fatal(w.Code)
		}
	}
}
