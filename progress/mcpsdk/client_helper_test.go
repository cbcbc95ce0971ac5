package mcpsdk_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const ms = time.Millisecond

var protocols = []string{"2025-11-25", "2026-07-28"}

func newTestClient(opts *mcp.ClientOptions) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, opts)
}

func newTestServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "server", Version: "v1"}, nil)
}

// connectClient connects the two in memory, for as long as the test runs.
func connectClient(t testing.TB, c *mcp.Client, s *mcp.Server, version string) *mcp.ClientSession {
	t.Helper()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), serverSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := c.Connect(t.Context(), clientSide, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := cs.InitializeResult().ProtocolVersion; version != "" && got != version {
		t.Fatalf("protocol %s, want %s", got, version)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		_ = ss.Wait()
	})
	return cs
}

// addTool adds a tool that calls work with a function that reports progress.
func addTool(s *mcp.Server, name string, work func(ctx context.Context, report func(progress float64, message string)) error) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			err := work(ctx, func(progress float64, message string) {
				token := req.Params.GetProgressToken()
				if token == nil {
					return
				}
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Message: message})
			})
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
}

// addHang adds a tool that runs until it is cancelled, and says so.
func addHang(s *mcp.Server, name string) (cancelled <-chan struct{}) {
	ch := make(chan struct{}, 1000)
	addTool(s, name, func(ctx context.Context, _ func(float64, string)) error {
		<-ctx.Done()
		ch <- struct{}{}
		return ctx.Err()
	})
	return ch
}

// timedOut checks everything that SPEC 8.2 says of the error of a timeout.
func timedOut(t testing.TB, err error, method string) *timeout.Error {
	t.Helper()
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != request.CodeTimeout {
		t.Fatalf("%T %v: want a *jsonrpc.Error with code -32001", err, err)
	}
	var e *timeout.Error
	if !errors.As(err, &e) || !e.Timeout() || e.Tool != method {
		t.Fatalf("%v: want a *timeout.Error of %s, got %+v", err, method, e)
	}
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("%v: want context.DeadlineExceeded, and not context.Canceled", err)
	}
	return e
}
