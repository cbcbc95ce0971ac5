package mcpsdk_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/stream"
)

// A lost session is the SDK's to know: when the stream of notifications is reopened, a server that was started anew does
// not know it.
func TestNotificationStreamOfALostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var anew atomic.Bool
		before, after := newServer(), newServer()
		mcpsdk.Install(before, nil)
		hs := map[bool]http.Handler{
			false: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return before }, nil),
			true:  mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return after }, nil),
		}
		hc := overNet(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hs[anew.Load()].ServeHTTP(w, r) }))
		hc.Transport = &stream.Notifications{Base: hc.Transport, Idle: time.Minute}
		cs, err := newTestClient(nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://localhost/", HTTPClient: hc}, &mcp.ClientSessionOptions{ProtocolVersion: protocol2025})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		anew.Store(true)
		if err := cs.Wait(); err == nil {
			t.Error("the session is over without an error")
		}
		_ = cs.Close()
		for ss := range before.Sessions() {
			_ = ss.Close()
		}
		hc.Transport.(*stream.Notifications).Base.(*http.Transport).CloseIdleConnections()
	})
}

// The old transport's stream is the session: when it goes silent, both are over.
func TestSSEStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
		var opened atomic.Int32
		hc := overNet(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				opened.Add(1)
			}
			h.ServeHTTP(w, r)
		}))
		base := hc.Transport.(*http.Transport)
		hc.Transport = &stream.Notifications{Base: base, Idle: time.Minute}
		cs, err := newTestClient(nil).Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: "http://localhost/", HTTPClient: hc}, nil)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_ = cs.Wait()
		if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "noop"}); !errors.Is(err, mcp.ErrConnectionClosed) || time.Since(begun) > time.Minute {
			t.Errorf("a call returns %v after %v", err, time.Since(begun))
		}
		if time.Sleep(time.Hour); opened.Load() != 1 {
			t.Errorf("%d streams opened", opened.Load())
		}
		_ = cs.Close()
		base.CloseIdleConnections()
	})
}
