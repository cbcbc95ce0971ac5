package mcpsdk_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

const ms = time.Millisecond

// The protocol versions that the SDK offers and that differ for us.
const (
	protocol2025 = sdktest.Old
	protocol2026 = sdktest.New
)

var protocols = []string{protocol2025, protocol2026}

// anyInput is the schema of a tool that takes what it gets.
var anyInput = map[string]any{"type": "object"}

func newTestClient(opts *mcp.ClientOptions) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "client", Version: "v1"}, opts)
}

func newTestServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "v1"}, nil)
}

// connectClient connects the two in memory, for as long as the test runs.
func connectClient(t testing.TB, c *mcp.Client, s *mcp.Server, version string) *mcp.ClientSession {
	t.Helper()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), serverSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	return connectTo(t, c, clientSide, version)
}

func connectTo(t testing.TB, c *mcp.Client, transport mcp.Transport, version string) *mcp.ClientSession {
	t.Helper()
	cs, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := cs.InitializeResult().ProtocolVersion; version != "" && got != version {
		t.Fatalf("protocol %s, want %s", got, version)
	}
	t.Cleanup(func() { _ = cs.Close() })
	return cs
}

// overNet is a client of a server in memory. Its end is that of the test.
func overNet(t testing.TB, h http.Handler) *http.Client {
	n := sdktest.NewNet(h)
	c := n.Client()
	t.Cleanup(func() {
		n.End()
		c.CloseIdleConnections()
		time.Sleep(time.Hour) // for tools that were not told of their end
	})
	return c
}

// streamable serves s over Streamable HTTP, and ends its sessions with the test.
func streamable(t testing.TB, s *mcp.Server, o *mcp.StreamableHTTPOptions) http.Handler {
	t.Cleanup(func() {
		for ss := range s.Sessions() {
			_ = ss.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o)
}

// addTool adds a tool that calls work with a function that reports progress.
func addTool(s *mcp.Server, name string, work func(ctx context.Context, report func(progress float64, message string)) error) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := work(ctx, func(progress float64, message string) {
			if token := req.Params.GetProgressToken(); token != nil {
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress, Message: message})
			}
		})
		if err != nil {
			return nil, err
		}
		return textResult("done"), nil
	})
}

// addHang adds a tool that runs until it is cancelled.
func addHang(s *mcp.Server, name string) {
	addTool(s, name, func(ctx context.Context, _ func(float64, string)) error { <-ctx.Done(); return ctx.Err() })
}

func textResult(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// texts returns the text contents of a result.
func texts(res *mcp.CallToolResult) []string {
	var all []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return all
}

// outcome returns what stands in _meta as a client sees it.
func outcome(res *mcp.CallToolResult) map[string]any {
	o, _ := res.Meta[toolcall.OutcomeKey].(map[string]any)
	return o
}

// call calls a tool, with a progress token unless that is nil.
func call(t testing.TB, cs *mcp.ClientSession, tool string, token any) *mcp.CallToolResult {
	t.Helper()
	p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
	if token != nil {
		p.SetProgressToken(token)
	}
	res, err := cs.CallTool(context.Background(), p)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// heard is what a client has been told.
type heard struct {
	mu  sync.Mutex
	all []mcp.ProgressNotificationParams
}

func (h *heard) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, *req.Params)
	}}
}

func (h *heard) list() []mcp.ProgressNotificationParams {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]mcp.ProgressNotificationParams(nil), h.all...)
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

// unlimited has no limits.
func unlimited() *request.Options {
	return &request.Options{Limits: new(request.Limits), PerMethod: map[string]request.Limits{}}
}
