package mcpsdk_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 9.5: behind a proxy that cuts every response after a time, a longer call is polled, its tool
// runs once, and nothing is cut. Without polling, the proxy cuts.
func TestPolling(t *testing.T) {
	for name, tc := range map[string]struct {
		opts  []mcpsdk.HTTPOption
		store mcp.EventStore
		token any
		cuts  bool
		polls bool
	}{
		"polled":              {[]mcpsdk.HTTPOption{mcpsdk.WithPolling(500 * time.Millisecond)}, mcp.NewMemoryEventStore(nil), "token", false, true},
		"not polled":          {nil, mcp.NewMemoryEventStore(nil), "token", true, true}, // this client resumes what was cut
		"silent, polled once": {[]mcpsdk.HTTPOption{mcpsdk.WithPolling(500 * time.Millisecond)}, mcp.NewMemoryEventStore(nil), nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs, cuts, polls atomic.Int32
				server := newServer()
				mcp.AddTool(server, &mcp.Tool{Name: "long"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
					runs.Add(1)
					for range 130 {
						select {
						case <-ctx.Done():
							return nil, nil, context.Cause(ctx)
						case <-time.After(100 * time.Millisecond):
							if tc.token != nil {
								heartbeat.Beat(ctx)
							}
						}
					}
					return textResult("whole"), nil, nil
				})
				mcpsdk.Install(server, &policy.Policy{Default: &timeout.Config{Idle: time.Minute}}, mcpsdk.WithInterval(50*time.Millisecond))
				h := mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
					&mcp.StreamableHTTPOptions{EventStore: tc.store}), tc.opts...)
				target, _ := url.Parse("http://localhost/")
				forward := httputil.NewSingleHostReverseProxy(target)
				forward.Transport = overNet(t, h).Transport
				forward.ErrorLog = log.New(io.Discard, "", 0)
				forward.FlushInterval = -1
				limit := 9 * time.Second
				if tc.token == nil {
					limit = 30 * time.Second // of a proxy that cuts what is silent, say
				}
				proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
						polls.Add(1)
					} else if r.Method == http.MethodGet {
						forward.ServeHTTP(w, r) // the session's stream, which may be cut
						return
					}
					ctx, cancel := context.WithTimeout(r.Context(), limit)
					defer cancel()
					defer func() {
						if ctx.Err() == context.DeadlineExceeded {
							cuts.Add(1)
							panic(http.ErrAbortHandler)
						}
					}()
					forward.ServeHTTP(w, r.WithContext(ctx))
				})
				cs, err := newTestClient(nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: overNet(t, proxy)},
					&mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
				if err != nil {
					t.Fatal(err)
				}
				params := &mcp.CallToolParams{Name: "long"}
				if tc.token != nil {
					params.SetProgressToken(tc.token)
				}
				res, err := cs.CallTool(t.Context(), params)
				if err != nil || res.IsError {
					t.Fatalf("%+v, %v", res, err)
				}
				if runs.Load() != 1 || (cuts.Load() > 0) != tc.cuts || (polls.Load() > 0) != tc.polls || tc.token == nil && polls.Load() != 1 {
					t.Errorf("%d runs, %d cuts, %d polls", runs.Load(), cuts.Load(), polls.Load())
				}
				_ = cs.Close()
				for ss := range server.Sessions() {
					_ = ss.Close()
				}
			})
		})
	}
}
