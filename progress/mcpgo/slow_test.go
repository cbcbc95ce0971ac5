package mcpgo_test

import (
	"context"
	"fmt"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A token that takes long to marshal widens the gap, in mcp-go, between the taking and the
// writing of a notification.
var slowToken = strings.Repeat("slow", 1<<15)

// slow has the token "slow" arrive as slowToken.
func slow(s *server.MCPServer) *server.MCPServer {
	s.GetHooks().AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		if m := r.Params.Meta; m != nil && m.ProgressToken == "slow" {
			m.ProgressToken = slowToken
		}
	})
	return s
}

// SPEC 7.4: however slow the transport is to write a notification, the result comes after it;
// and one that waits behind it still comes, before its own result.
func TestSlowNotification(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, s *server.MCPServer) transport.Interface{
		"http": func(t *testing.T, s *server.MCPServer) transport.Interface {
			return overNet(t, server.NewStreamableHTTPServer(s))
		},
		"wrapped": func(t *testing.T, s *server.MCPServer) transport.Interface {
			return overNet(t, mcpgo.WrapHTTP(server.NewStreamableHTTPServer(s)))
		},
		"serve": func(t *testing.T, s *server.MCPServer) transport.Interface {
			in, out := sdktest.NewPipe(), sdktest.NewPipe()
			ownQueue(s)
			go func() { _ = mcpgo.Serve(t.Context(), server.NewStdioServer(s), in, out, 0) }()
			t.Cleanup(func() { _, _ = in.Close(), out.Close(); time.Sleep(time.Hour) })
			return transport.NewIO(out, in, io.NopCloser(nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, open(t, slow(newServer())), name != "serve")
				got := record(c)
				report := func(token string) {
					if _, err := c.CallTool(t.Context(), call{tool: "report", args: map[string]any{"lingerMs": 30}, token: token}.request()); err != nil {
						t.Error(err)
					}
				}
				first := make(chan bool)
				go func() {
					defer close(first)
					report("slow")
					got.finished(slowToken)
				}()
				report("behind")
				got.finished("behind")
				<-first
				report("after") // what would come late has come before this
				if got.of(slowToken) != 1 || got.of("behind") != 1 {
					t.Errorf("slow: %v, behind: %v", got.of(slowToken), got.of("behind"))
				}
				got.mu.Lock()
				defer got.mu.Unlock()
				if len(got.late) > 0 {
					t.Errorf("%d after the result", len(got.late))
				}
			})
		})
	}
}

// A log of progress notifications as a client gets them, by token.
type notes struct {
	mu      sync.Mutex
	byToken map[any]int
	over    map[any]bool // the call with the token has its result
	late    []string
}

func record(c *client.Client) *notes {
	n := &notes{byToken: make(map[any]int), over: make(map[any]bool)}
	c.OnNotification(func(m mcp.JSONRPCNotification) {
		if m.Method != "notifications/progress" {
			return
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		token := m.Params.AdditionalFields["progressToken"]
		n.byToken[token]++
		if n.over[token] {
			n.late = append(n.late, fmt.Sprint(token))
		}
	})
	return n
}

func (n *notes) of(token any) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byToken[token]
}

func (n *notes) finished(token any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over[token] = true
}
