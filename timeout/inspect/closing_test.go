package inspect_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/inspect"
)

// SPEC 3.20: the live page shows that an execution is closing.
func TestClosing(t *testing.T) {
	h := inspect.Handler(inspect.Options{})
	for _, tt := range []struct{ format, want string }{
		{"json", `"closing": true`}, {"html", ">closing</span>"}, {"text", "running, closing"},
	} {
		t.Run(tt.format, func(t *testing.T) {
			err := timeout.Run(t.Context(), func(ctx context.Context) error {
				for _, closing := range []bool{false, true} {
					if closing {
						timeout.FromContext(ctx).BeginClosing()
					}
					r := httptest.NewRequest("GET", fmt.Sprintf("/?id=%d&format=%s", timeout.FromContext(ctx).ID(), tt.format), nil)
					r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if got := strings.Contains(w.Body.String(), tt.want); got != closing {
						t.Errorf("closing is %t, shown is %t", closing, got)
					}
				}
				return nil
			}, timeout.Config{}, timeout.WithName("shown"))
			if err != nil {
				t.Error(err)
			}
		})
	}
}
