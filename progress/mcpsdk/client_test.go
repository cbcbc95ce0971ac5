package mcpsdk_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// SPEC 8.1, 8.2: the behaviour of the TypeScript SDK, and what it gets wrong.
func TestClientLimits(t *testing.T) {
	for _, test := range []struct {
		name     string
		limits   mcpsdk.ClientLimits
		progress []time.Duration
		answer   time.Duration
		fails    time.Duration // 0: does not
		kind     timeout.Kind
		message  string
	}{
		{name: "no reset", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms}, progress: []time.Duration{800 * ms}, answer: 1600 * ms,
			fails: 1000 * ms, kind: timeout.KindIdle, message: `calling "tools/call": Request timed out: no answer for 1s`},
		{name: "reset", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{800 * ms}, answer: 1600 * ms},
		{name: "three resets", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true},
			progress: []time.Duration{800 * ms, 1600 * ms, 2400 * ms}, answer: 3200 * ms},
		{name: "silence", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{800 * ms}, answer: time.Hour,
			fails: 1800 * ms, kind: timeout.KindIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1.8s after the start`},
		{name: "cap with progress", limits: mcpsdk.ClientLimits{Timeout: 100 * ms, MaxTotal: 150 * ms, ResetOnProgress: true},
			progress: []time.Duration{80 * ms, 160 * ms}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.KindTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "cap without progress", limits: mcpsdk.ClientLimits{Timeout: time.Minute, MaxTotal: 150 * ms, ResetOnProgress: true}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.KindTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "cap without reset", limits: mcpsdk.ClientLimits{MaxTotal: 150 * ms}, answer: time.Hour,
			fails: 150 * ms, kind: timeout.KindTotal, message: `calling "tools/call": Maximum total timeout exceeded: 150ms`},
		{name: "no limits", answer: 1000 * time.Hour},
		{name: "just in time", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms}, answer: 1000*ms - 1},
		{name: "progress just in time", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{1000*ms - 1}, answer: 2000*ms - 2},
		{name: "progress just too late", limits: mcpsdk.ClientLimits{Timeout: 1000 * ms, ResetOnProgress: true}, progress: []time.Duration{1000*ms + 1}, answer: time.Hour,
			fails: 1000 * ms, kind: timeout.KindIdle, message: `calling "tools/call": Request timed out: no progress for 1s, 1s after the start`},
	} {
		for _, version := range protocols {
			t.Run(test.name+"/"+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, s := newTestClient(nil), newTestServer()
					mcpsdk.Limit(c, test.limits, nil)
					cancelled := false
					addTool(s, "work", func(ctx context.Context, report func(float64, string)) error {
						start := time.Now()
						for i, at := range test.progress {
							select {
							case <-time.After(at - time.Since(start)):
							case <-ctx.Done():
							}
							report(float64(i+1), "")
						}
						select {
						case <-time.After(test.answer - time.Since(start)):
						case <-ctx.Done():
							cancelled = true
						}
						return ctx.Err()
					})
					cs := connectClient(t, c, s, version)

					start := time.Now()
					res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"})
					elapsed := time.Since(start)
					synctest.Wait()
					if test.fails == 0 {
						if err != nil || res.IsError || elapsed != test.answer {
							t.Errorf("%v, %v after %v, want the answer after %v", res, err, elapsed, test.answer)
						}
						return
					}
					e := timedOut(t, err, "tools/call")
					if res != nil || err.Error() != test.message || e.Kind != test.kind || e.Elapsed != test.fails || elapsed != test.fails || e.Abandoned {
						t.Errorf("%v, %q after %v: %+v", res, err, elapsed, e)
					}
					if !cancelled {
						t.Error("the request was not cancelled at the server")
					}
				})
			})
		}
	}
}
