package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

// SPEC 3.1, 7.6, 7.7.
func TestHang(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, []string{"MCP_IDLE_TIMEOUT=0.5"})
		res, got := c.must(t, "hang", nil)
		want := []string{"No progress for 0.5s (idle timeout). Tool should call heartbeat() during long work."}
		if d := cmp.Diff(want, got); d != "" || !res.IsError {
			t.Errorf("isError %v\n%s", res.IsError, d)
		}
		if d := cmp.Diff([]any{"idle", 124.0, 60e3, 500.0}, outcome(t, res)); d != "" {
			t.Error(d)
		}
		if m := c.messages(t); len(m) > 0 {
			t.Errorf("heard %q of a silent tool", m)
		}
	})
}

func TestHangAbort(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, []string{"MCP_IDLE_TIMEOUT=0", "HANG_TIMEOUT_MS=0"})
		begun := time.Now()
		c.abort(t, "hang", nil, func() bool { return time.Since(begun) > 5*time.Second })
		eventually(t, func() bool {
			return strings.Contains(c.server.String(), "tool=hang") && strings.Contains(c.server.String(), " exit_code=130")
		})
	})
}

// SPEC 3.9: the answer comes at the limit and the grace, also to more calls than a server may
// have workers, and the server goes on.
func TestDeaf(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, []string{"MCP_IDLE_TIMEOUT=3"})
		done := make(chan bool)
		for range 6 {
			go func() {
				defer func() { done <- true }()
				begun := time.Now()
				res, err := c.call(t.Context(), "deaf", map[string]any{"seconds": 600})
				if err != nil || !res.IsError || !strings.HasPrefix(texts(res)[0], "No progress for 3s") || time.Since(begun) > generous/4 {
					t.Errorf("%v after %v: %v", err, time.Since(begun), res)
					return
				}
				if o, _ := res.Meta[toolcall.OutcomeKey].(map[string]any); o["abandoned"] != true {
					t.Errorf("%v", o)
				}
			}()
		}
		for range 6 {
			<-done
		}
		if res, got := c.must(t, "deaf", map[string]any{"seconds": 0.01}); res.IsError || got[0] != "ignored everything for 0.01 seconds" {
			t.Errorf("isError %v: %q", res.IsError, got)
		}
		for _, bad := range []float64{-1, 600.1} {
			if res, got := c.must(t, "deaf", map[string]any{"seconds": bad}); !res.IsError || !strings.HasSuffix(got[0], "want a number from 0 to 600") {
				t.Errorf("isError %v: %q", res.IsError, got)
			}
		}
	})
}
