package mcpgo_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A lossy transport loses the first answers to calls of tools.
type lossy struct {
	transport.Interface
	lose int
}

func (l *lossy) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	resp, err := l.Interface.SendRequest(ctx, r)
	if r.Method == "tools/call" && l.lose > 0 {
		l.lose--
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return resp, err
}

// SPEC 8.8: a call is sent again where the caller asks for it and the tool says that it may be, with one key,
// and a server with WithIdempotency runs it once.
func TestRetryToolCall(t *testing.T) {
	for _, tc := range []struct {
		name       string
		methods    []string
		tool       string
		unlisted   bool
		idempotent bool // the server
		key        string
		tries      int
		runs       int
	}{
		{name: "idempotent", methods: []string{"tools/call"}, tool: "idempotent", tries: 3, runs: 3},
		{name: "reads", methods: []string{"tools/call"}, tool: "reads", tries: 3, runs: 3},
		{name: "the caller's key", methods: []string{"tools/call"}, tool: "reads", key: "own", tries: 3, runs: 3},
		{name: "answered once", methods: []string{"tools/call"}, tool: "idempotent", idempotent: true, tries: 3, runs: 1},
		{name: "writes", methods: []string{"tools/call"}, tool: "writes", idempotent: true, tries: 1, runs: 1},
		{name: "not listed", methods: []string{"tools/call"}, tool: "idempotent", unlisted: true, tries: 1, runs: 1},
		{name: "not asked for", methods: []string{"tools/*", "*"}, tool: "idempotent", tries: 1, runs: 1},
	} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, ", modern=", modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := server.NewMCPServer("test", "1")
					var keys []any
					runs := 0
					s.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
						return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
							var key any
							if r.Params.Meta != nil {
								key = r.Params.Meta.AdditionalFields[request.IdempotencyKey]
							}
							keys = append(keys, key)
							return next(ctx, r)
						}
					})
					if tc.idempotent {
						mcpgo.Install(s, nil, mcpgo.WithIdempotency())
					}
					s.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
						return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
							runs++
							return next(ctx, r)
						}
					})
					work := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return mcp.NewToolResultText(fmt.Sprint("run ", runs)), nil
					}
					s.AddTool(mcp.NewTool("idempotent", mcp.WithIdempotentHintAnnotation(true)), work)
					s.AddTool(mcp.NewTool("reads", mcp.WithReadOnlyHintAnnotation(true)), work)
					s.AddTool(mcp.NewTool("writes"), work)
					limited := mcpgo.Limit(&lossy{transport.NewInProcessTransport(s), 2}, mcpgo.ClientLimits{Timeout: 10 * time.Second}, nil)
					c := connect(t, mcpgo.Retry(limited, request.Backoff{}, tc.methods...), modern)
					if !tc.unlisted {
						if _, err := c.ListTools(t.Context(), mcp.ListToolsRequest{}); err != nil {
							t.Fatal(err)
						}
					}
					params := mcp.CallToolParams{Name: tc.tool}
					if tc.key != "" {
						params.Meta = &mcp.Meta{AdditionalFields: map[string]any{request.IdempotencyKey: tc.key}}
					}
					res, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: params})
					synctest.Wait()
					if tc.tries == 1 {
						requestTimeout(t, err, "tools/call")
						if keys[0] != nil {
							t.Errorf("a call that is not sent again has the key %v", keys[0])
						}
					} else if err != nil || res.Content[0].(mcp.TextContent).Text != fmt.Sprint("run ", tc.runs) {
						t.Errorf("%v, %v, want run %d", res, err, tc.runs)
					}
					if len(keys) != tc.tries || runs != tc.runs {
						t.Errorf("%d tries, %d runs, want %d, %d", len(keys), runs, tc.tries, tc.runs)
					}
					for _, key := range keys[1:] {
						if diff := cmp.Diff(keys[0], key); diff != "" || key == "" || key == nil || tc.key != "" && key != tc.key {
							t.Errorf("keys %v", keys)
						}
					}
				})
			})
		}
	}
}

// A call that was aborted because its client has given up is made again, and not answered with its abort.
func TestIdempotencyAfterAnAbort(t *testing.T) {
	each(t, named("stdio 2025", "wrapped 2026"), func(t *testing.T, l link) {
		s := server.NewMCPServer("test", "1")
		mcpgo.Install(s, nil, mcpgo.WithIdempotency())
		var runs atomic.Int32
		ctx, giveUp := context.WithCancel(soon(t))
		defer giveUp()
		ended := make(chan struct{})
		s.AddTool(mcp.NewTool("slow"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if runs.Add(1) == 1 {
				defer close(ended)
				giveUp()
				<-ctx.Done()
			}
			return mcp.NewToolResultText("done"), nil
		})
		c := l.connect(t, s)
		call := func(ctx context.Context) error {
			_, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "slow",
				Meta: &mcp.Meta{AdditionalFields: map[string]any{request.IdempotencyKey: "k"}}}})
			return err
		}
		if err := call(ctx); err == nil {
			t.Error("no error")
		}
		select {
		case <-ended:
		case <-time.After(slack):
			t.Fatal("the tool was not stopped")
		}
		for range 2 {
			if err := call(soon(t)); err != nil {
				t.Error(err)
			}
		}
		if runs.Load() != 2 {
			t.Errorf("%d runs, want 2", runs.Load())
		}
	})
}
