package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A call that waits for its turn is under no limit, can be cancelled, and is served when its
// turn has come.
func TestAdmission(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		c := w.connect(t, nil, []string{"SEARCH_TIMEOUT_MS=10000", "HANG_TIMEOUT_MS=0", "MCP_IDLE_TIMEOUT=0"}, "-calls", "1")
		first, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _, _ = c.call(first, "run_command", sh(t, `echo ready; sleep 600`)) }()
		eventually(t, func() bool { return len(c.messages(t)) > 0 }) // it has the only turn

		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if res, err := c.call(ctx, "hang", nil); err == nil {
			t.Errorf("a call out of turn: %v", res)
		}

		served := make(chan []string, 1)
		go func() {
			res, err := c.call(t.Context(), "search", map[string]any{"root": t.TempDir(), "pattern": "x"})
			if err != nil {
				t.Error(err)
			} else {
				served <- texts(res)
			}
			close(served)
		}()
		select {
		case got := <-served:
			t.Errorf("a call out of turn: %q", got)
		case <-time.After(300 * time.Millisecond):
		}
		stop()
		if d := cmp.Diff([]string{"0 matching lines; searched 0 of 0 files"}, <-served); d != "" {
			t.Error(d)
		}
	})
}
