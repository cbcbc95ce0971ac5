package mcpsdk_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// SPEC 7.5: a client that reads nothing delays neither the tool nor its limits, and the
// result by the 200 ms that a notification in flight has at the most.
func TestStalledClient(t *testing.T) {
	for _, tt := range []struct {
		name  string
		idle  time.Duration
		ended time.Duration
		code  int
	}{
		{"in time", 2 * time.Second, 100 * time.Second, 0},
		{"idle", time.Second, time.Second, timeout.ExitTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.AddTool(&mcp.Tool{Name: "work", InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					for range 100 {
						heartbeat.Beat(ctx)
						if err := sleep(ctx, time.Second); err != nil {
							return nil, err
						}
					}
					return textResult("done"), nil
				})
				finished := timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
					if s.Elapsed != tt.ended || timeout.ExitCode(s.Err) != tt.code {
						t.Errorf("ended with %d after %v, want %d after %v", timeout.ExitCode(s.Err), s.Elapsed, tt.code, tt.ended)
					}
				}})
				limits := &policy.Policy{Default: &timeout.Config{Idle: tt.idle}}
				mcpsdk.Install(s, limits, mcpsdk.WithOptions(finished), mcpsdk.WithInterval(time.Second))
				answered := make(chan time.Duration)
				start := time.Now()
				s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						res, err := next(ctx, method, req)
						if method == "tools/call" {
							answered <- time.Since(start)
						}
						return res, err
					}
				})
				in, out := newStalledClient(t, s)
				fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":1}}}`)
				if at := <-answered; at > tt.ended+200*time.Millisecond {
					t.Errorf("answered after %v", at)
				}
				// From here on the SDK waits for the client, on a mutex.
				out.Close()
				in.Close()
			})
		})
	}
}

// newStalledClient connects a client that has read the answer to initialize and reads no more.
func newStalledClient(t *testing.T, s *mcp.Server) (io.WriteCloser, io.Closer) {
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	if _, err := s.Connect(context.Background(), &mcp.IOTransport{Reader: serverIn, Writer: serverOut}, nil); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	buf := make([]byte, 64<<10)
	if _, err := out.Read(buf); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return in, out
}
