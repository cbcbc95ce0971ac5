package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// SPEC 8.5, 8.8: list and read requests are sent again if they are named, and a call of a tool that has not
// said that it may be is not, even if it is.
func TestRetry(t *testing.T) {
	for _, test := range []struct {
		name    string
		methods []string
		method  string
		fails   int // how many tries time out
		want    []time.Duration
		ok      bool
	}{
		{"not named", nil, "tools/list", 1, []time.Duration{0}, false},
		{"named", []string{"tools/list"}, "tools/list", 1, []time.Duration{0, 12 * time.Second}, true},
		{"pattern", []string{"tools/*"}, "tools/list", 3, []time.Duration{0, 12 * time.Second, 26 * time.Second, 44 * time.Second}, true},
		{"in vain", []string{"*"}, "resources/read", 4, []time.Duration{0, 12 * time.Second, 26 * time.Second, 44 * time.Second}, false},
		{"tool call", []string{"*", "tools/call"}, "tools/call", 1, []time.Duration{0}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var mu sync.Mutex
				var got []time.Duration
				c := newTestClient(nil)
				mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: 10 * time.Second}, nil)
				mcpsdk.Retry(c, request.Backoff{}, test.methods...)
				_, transport := serveRaw(t, func(w *rawServer, req *jsonrpc.Request) {
					switch req.Method {
					case "initialize":
						w.initialize(req)
					case test.method:
						mu.Lock()
						defer mu.Unlock()
						got = append(got, time.Since(start))
						if len(got) > test.fails {
							w.answer(req.ID, `{"tools":[],"contents":[],"content":[]}`)
						}
					}
				})
				cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				switch test.method {
				case "tools/list":
					_, err = cs.ListTools(t.Context(), nil)
				case "resources/read":
					_, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///r"})
				case "tools/call":
					_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "work"})
				}
				synctest.Wait()
				if d := cmp.Diff(test.want, got); d != "" {
					t.Error(d)
				}
				if test.ok && err != nil {
					t.Error(err)
				} else if !test.ok {
					timedOut(t, err, test.method)
				}
			})
		})
	}
}

// A server's answer is final; the caller's end is, too.
func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(nil)
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: 10 * time.Second}, nil)
		mcpsdk.Retry(c, request.Backoff{}, "*")
		var tries atomic.Int64
		_, transport := serveRaw(t, func(w *rawServer, req *jsonrpc.Request) {
			switch req.Method {
			case "initialize":
				w.initialize(req)
			case "resources/read":
				tries.Add(1)
				w.send(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32603,"message":"no"}}`, req.ID.Raw())
			case "tools/list":
				tries.Add(1)
			}
		})
		cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		var answer *jsonrpc.Error
		if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///r"}); !errors.As(err, &answer) || answer.Code != -32603 || tries.Load() != 1 {
			t.Errorf("%v after %d tries", err, tries.Load())
		}
		for _, test := range []struct {
			after time.Duration
			tries int64
		}{{5 * time.Second, 1}, {11 * time.Second, 1}, {13 * time.Second, 2}} {
			tries.Store(0)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(test.after, cancel)
			start := time.Now()
			if _, err := cs.ListTools(ctx, nil); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || tries.Load() != test.tries || time.Since(start) != test.after {
				t.Errorf("%v after %v and %d tries, want %+v", err, time.Since(start), tries.Load(), test)
			}
		}
		_ = cs.Close()
		tries.Store(0)
		if _, err := cs.ListTools(t.Context(), nil); !errors.Is(err, mcp.ErrConnectionClosed) || tries.Load() != 0 {
			t.Errorf("%v after %d tries", err, tries.Load())
		}
	})
}

// A request that the transport could not deliver is sent again.
func TestRetryTransport(t *testing.T) {
	s := transportServer(time.Minute)
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	var unavailable atomic.Int64
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if unavailable.Add(-1) >= 0 {
			http.Error(w, "try later", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}))
	c := newTestClient(nil)
	mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Minute}, nil)
	mcpsdk.Retry(c, request.Backoff{First: ms}, "tools/*")
	cs, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	unavailable.Store(2)
	if res, err := cs.ListTools(t.Context(), nil); err != nil || len(res.Tools) != 3 {
		t.Errorf("%v, %v", res, err)
	}
	unavailable.Store(1)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "cancelled"}); err == nil {
		t.Error("a tool call was sent again")
	}
}
