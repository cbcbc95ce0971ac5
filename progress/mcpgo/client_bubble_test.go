package mcpgo_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// overNet is the transport of a client to a server over HTTP, in memory. Its end is that of the test.
func overNet(t *testing.T, h http.Handler, opts ...transport.StreamableHTTPCOption) transport.Interface {
	n := sdktest.NewNet(h)
	c := n.Client()
	t.Cleanup(func() {
		n.End()
		c.CloseIdleConnections()
		time.Sleep(time.Hour)
	})
	tr, err := transport.NewStreamableHTTP("http://localhost/", append(opts, transport.WithHTTPBasicClient(c))...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// SPEC 9.1: the stream of notifications has no limit.
func TestStreamHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
		tr := overNet(t, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
		c := connect(t, mcpgo.Limit(tr, mcpgo.ClientLimits{Timeout: time.Second, MaxTotal: time.Second}, nil), true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}) }()
		time.Sleep(24 * time.Hour)
		if len(ended) > 0 {
			t.Errorf("the stream ended with %v", <-ended)
		}
		cancel()
		synctest.Wait()
	})
}

// The effects of a handler that is not slow can be seen when the call has returned, as they can be without us over stdio.
func TestHandlersBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDKServer(sdktest.Config{Tools: map[string]sdktest.Tool{"report": {Run: func(ctx context.Context, _ *sdktest.Call) (*sdktest.Result, error) {
			progress.Report(ctx, progress.Update{Progress: 1})
			return sdktest.Text("done"), nil
		}}}})
		in, out := sdktest.NewPipe(), sdktest.NewPipe()
		go func() { _ = s.Serve(t.Context(), in, out, 0) }()
		c := connect(t, mcpgo.Limit(transport.NewIO(out, in, io.NopCloser(nil)), mcpgo.ClientLimits{Timeout: never, ResetOnProgress: true}, nil), false)
		var handled atomic.Int32
		c.OnNotification(func(mcp.JSONRPCNotification) {
			time.Sleep(15 * ms) // the answer waits for 20 ms
			handled.Add(1)
		})
		for i := range 20 {
			if _, err := c.CallTool(t.Context(), call{tool: "report", token: "t"}.request()); err != nil || handled.Load() != int32(i+1) {
				t.Fatalf("%v, %d handled after %d calls", err, handled.Load(), i+1)
			}
		}
		_, _ = in.Close(), out.Close()
		time.Sleep(time.Hour)
	})
}

// SPEC 3.23, 8.6: both SDKs' clients hang up first when they cancel a call, and then say why. A client that says nothing
// has disconnected.
func TestReasonAfterHangingUp(t *testing.T) {
	for want, limits := range map[string]mcpgo.ClientLimits{"client_timeout": {Timeout: 5 * time.Second}, "disconnected": {}} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			s := newSDKServer(sdktest.Config{
				Tools: map[string]sdktest.Tool{"silent": {Run: func(ctx context.Context, _ *sdktest.Call) (*sdktest.Result, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}}},
				Options: []timeout.Option{timeout.Config{}, timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) { ended <- s.Err }})},
			})
			tr := overNet(t, s.HTTP(false))
			if limits.Timeout > 0 {
				tr = mcpgo.Limit(tr, mcpgo.ClientLimits{}, map[string]mcpgo.ClientLimits{"tools/call": limits})
			}
			c := connect(t, tr, false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(30*time.Second, cancel)
			if _, err := c.CallTool(ctx, call{tool: "silent"}.request()); err == nil {
				t.Error("no error")
			}
			if err := <-ended; toolcall.CauseOf(err) != want {
				t.Errorf("the cause is %q of %v, want %q", toolcall.CauseOf(err), err, want)
			}
			s.Close()
		})
	}
}
