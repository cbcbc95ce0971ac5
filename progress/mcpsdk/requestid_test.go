package mcpsdk_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

type ids struct{ Request, Session string }

// newIdentified is a server whose tool says which request and session it runs for; with a typed
// handler that has limits of its own, or without.
func newIdentified(typed bool) (*mcp.Server, func() ids) {
	var mu sync.Mutex
	var got ids
	tool := func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		mu.Lock()
		defer mu.Unlock()
		call := toolcall.FromContext(ctx)
		got = ids{call.RequestID, call.SessionID}
		return &mcp.CallToolResult{}, nil, nil
	}
	s := newServer()
	if typed {
		mcp.AddTool(s, &mcp.Tool{Name: "id"}, mcpsdk.Handler(tool))
	} else {
		mcpsdk.Install(s, &policy.Policy{})
		mcp.AddTool(s, &mcp.Tool{Name: "id"}, tool)
	}
	return s, func() ids {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// The ids of a server that a tool runs in memory are its own.
func TestIDsWithin(t *testing.T) {
	within, got := newIdentified(false)
	s := newServer()
	mcpsdk.Install(s, &policy.Policy{})
	mcp.AddTool(s, &mcp.Tool{Name: "outer"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		near, far := mcp.NewInMemoryTransports()
		if _, err := within.Connect(ctx, far, nil); err != nil {
			return nil, nil, err
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, near, nil)
		if err != nil {
			return nil, nil, err
		}
		defer session.Close()
		_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "id"})
		return &mcp.CallToolResult{}, nil, err
	})
	c := newRawClient(t, s, plain)
	c.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"outer","arguments":{}},"id":"a-7"}`)
	if line, ok := <-c.lines; !ok || strings.Contains(line, "isError") {
		t.Fatal(line)
	}
	if id := got().Request; id == "" || id == "a-7" {
		t.Errorf("the id is %q", id)
	}
}
