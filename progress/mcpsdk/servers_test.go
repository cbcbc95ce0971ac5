package mcpsdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/heartbeat"
	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// The protocol versions that the SDK offers and that differ for us.
const (
	protocol2025 = "2025-11-25"
	protocol2026 = "2026-07-28"
)

// anyInput is the schema of a tool that takes what it gets.
var anyInput = map[string]any{"type": "object"}

// newServer returns a server with the tools of this file.
func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	addTools(s)
	return s
}

// addTools adds one tool for each way to behave.
func addTools(s *mcp.Server) {
	raw := func(name string, h mcp.ToolHandler) { s.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, h) }
	raw("noop", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return textResult("done"), nil
	})
	raw("beat", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 25 { // longer than the idle limit of the tests
			if err := sleep(ctx, 160*time.Millisecond); err != nil {
				return nil, err
			}
			heartbeat.Beat(ctx)
		}
		return textResult("done"), nil
	})
	raw("report", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 20 {
			progress.Report(ctx, progress.Update{Progress: float64(i / 2), Total: 10, Message: fmt.Sprint("step ", i)})
			if err := sleep(ctx, 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
		return textResult("done"), nil
	})
	raw("silent", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return textResult("two of three files"), nil
	})
	raw("lost", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	raw("panic", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("no such index") })
	raw("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("disk is full")
	})
}

// sleep is time.Sleep that listens.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
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

// A link connects a client to a server; the cleanup of t disconnects them.
type link func(t testing.TB, s *mcp.Server, opts *mcp.ClientOptions) *mcp.ClientSession

// inMemory is the link over the SDK's in-memory transport.
func inMemory(version string) link {
	return func(t testing.TB, s *mcp.Server, opts *mcp.ClientOptions) *mcp.ClientSession {
		t.Helper()
		server, client := mcp.NewInMemoryTransports()
		return connect(t, s, opts, version, server, client)
	}
}

func connect(t testing.TB, s *mcp.Server, opts *mcp.ClientOptions, version string, server, client mcp.Transport) *mcp.ClientSession {
	t.Helper()
	ss, err := s.Connect(context.Background(), server, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ss.Wait() })
	return newClient(t, opts, version, client)
}

func newClient(t testing.TB, opts *mcp.ClientOptions, version string, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opts)
	line := &capture{Transport: transport}
	cs, err := c.Connect(context.Background(), line, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	lines.Store(cs, func() { _ = line.conn.Close() })
	t.Cleanup(func() { lines.Delete(cs); _ = cs.Close() })
	return cs
}

// lines has what cuts the connection of each client's session.
var lines sync.Map

// hangUp cuts the connection of a client, as its death would.
func hangUp(t testing.TB, cs *mcp.ClientSession) {
	t.Helper()
	cut, ok := lines.Load(cs)
	if !ok {
		t.Fatal("no connection")
	}
	cut.(func())()
}

// capture is a transport that remembers its connection.
type capture struct {
	mcp.Transport
	conn mcp.Connection
}

func (c *capture) Connect(ctx context.Context) (_ mcp.Connection, err error) {
	c.conn, err = c.Transport.Connect(ctx)
	return c.conn, err
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

// increases fails unless the progress of each notification is above that of the one before.
func increases(t testing.TB, all []mcp.ProgressNotificationParams) {
	t.Helper()
	for i := 1; i < len(all); i++ {
		if all[i].Progress <= all[i-1].Progress {
			t.Errorf("progress %v after %v", all[i].Progress, all[i-1].Progress)
		}
	}
}

// toolIdle is the idle limit of the tools where they are called over every transport.
const toolIdle = 3 * time.Second

// childServers are what the test binary serves over stdio, see TestMain.
var childServers = map[string]func() error{
	"tools": func() error {
		s := newServer()
		idle := timeout.Config{Idle: toolIdle}
		mcpsdk.Install(s, &policy.Policy{Default: &idle}, mcpsdk.WithInterval(50*time.Millisecond))
		return s.Run(context.Background(), mcpsdk.WrapTransport(&mcp.StdioTransport{}))
	},
	// long ends in order when it is told to.
	"long": func() error {
		s := newServer()
		s.AddTool(&mcp.Tool{Name: "long", InputSchema: anyInput}, longTool)
		mcpsdk.Install(s, nil)
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return mcpsdk.Serve(ctx, s, &mcp.StdioTransport{}, 0)
	},
	// unlimited says on stderr how each call ends.
	"unlimited": func() error {
		s := newServer()
		told := timeout.WithHooks(timeout.Hooks{Finished: func(_ context.Context, s timeout.Snapshot) {
			fmt.Fprintln(os.Stderr, "finished", s.Tool, timeout.ExitCode(s.Err))
		}, Started: func(_ context.Context, s timeout.Snapshot) {
			fmt.Fprintln(os.Stderr, "started", s.Tool)
		}})
		mcpsdk.Install(s, nil, mcpsdk.WithOptions(timeout.Config{}, told))
		err := s.Run(context.Background(), &mcp.StdioTransport{})
		if err != nil && strings.Contains(err.Error(), "closed") {
			return nil
		}
		return err
	},
}
