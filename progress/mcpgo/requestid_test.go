package mcpgo_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
)

type ids struct{ Request, Session string }

// An identified server has a tool that notes which request and session it runs for, and what of
// _meta it sees.
type identified struct {
	*server.MCPServer
	mu   sync.Mutex
	sent string // the id of the last call, as it stands in JSON
	got  ids
	own  string // mcp-go's id of the session
	meta *mcp.Meta
}

func newIdentified(handler bool) *identified {
	s := &identified{MCPServer: server.NewMCPServer("test", "1", server.WithToolCapabilities(false))}
	tool := func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		call := toolcall.FromContext(ctx)
		s.got, s.meta = ids{call.RequestID, call.SessionID}, r.Params.Meta
		s.own = server.ClientSessionFromContext(ctx).SessionID()
		return mcp.NewToolResultText("done"), nil
	}
	mcpgo.Install(s.MCPServer, toolPolicy)
	s.GetHooks().AddOnRequestInitialization(func(_ context.Context, _, message any) error {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		raw, _ := message.(json.RawMessage)
		if json.Unmarshal(raw, &m) == nil && m.Method == "tools/call" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent = string(m.ID)
		}
		return nil
	})
	if handler {
		tool = mcpgo.Handler(tool)
	}
	s.AddTool(mcp.NewTool("id"), tool)
	return s
}

// The ids of a server that a tool runs in its process are its own.
func TestIDsWithin(t *testing.T) {
	within := newIdentified(false)
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(false))
	mcpgo.Install(s, toolPolicy)
	var outer ids
	s.AddTool(mcp.NewTool("outer"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		outer.Request = toolcall.FromContext(ctx).RequestID
		c, err := client.NewInProcessClient(within.MCPServer)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := c.Start(ctx); err != nil {
			return nil, err
		}
		if _, err := c.Initialize(ctx, mcp.InitializeRequest{}); err != nil {
			return nil, err
		}
		return c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "id"}})
	})
	for _, l := range named("http 2025") {
		c := l.connect(t, s)
		for range 3 { // so that the ids differ
			_, _ = c.ListTools(soon(t), mcp.ListToolsRequest{})
		}
		if res, err := c.CallTool(soon(t), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "outer"}}); err != nil || res.IsError {
			t.Fatal(res, err)
		}
	}
	if diff := cmp.Diff(ids{Request: within.sent}, within.got); diff != "" || within.sent == outer.Request {
		t.Errorf("outer %q (-want +got):\n%s", outer.Request, diff)
	}
}
