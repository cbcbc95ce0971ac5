package mcpsdk_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
)

// A lossy transport loses the first answers to calls of tools.
type lossy struct {
	mcp.Transport
	lose int
}

type lossyConnection struct {
	mcp.Connection
	mu    sync.Mutex
	lose  int
	calls map[jsonrpc.ID]bool
}

func (l *lossy) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	return &lossyConnection{Connection: c, lose: l.lose, calls: map[jsonrpc.ID]bool{}}, err
}

func (c *lossyConnection) Write(ctx context.Context, msg jsonrpc.Message) error {
	if r, ok := msg.(*jsonrpc.Request); ok && r.Method == "tools/call" {
		c.mu.Lock()
		c.calls[r.ID] = true
		c.mu.Unlock()
	}
	return c.Connection.Write(ctx, msg)
}

func (c *lossyConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.Connection.Read(ctx)
		r, ok := msg.(*jsonrpc.Response)
		c.mu.Lock()
		lost := ok && c.calls[r.ID] && c.lose > 0
		if lost {
			c.lose--
		}
		c.mu.Unlock()
		if err != nil || !lost {
			return msg, err
		}
	}
}

// SPEC 8.8: a call is sent again where the caller asks for it and the tool says that it may be, with one key,
// and a server with WithIdempotency runs it once.
func TestRetryToolCall(t *testing.T) {
	for _, tc := range []struct {
		name       string
		methods    []string
		tool       string
		unlisted   bool
		changed    bool // the tools, since they were listed
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
		{name: "changed", methods: []string{"tools/call"}, tool: "idempotent", changed: true, tries: 1, runs: 1},
		{name: "not asked for", methods: []string{"tools/*", "*"}, tool: "idempotent", tries: 1, runs: 1},
	} {
		for _, version := range protocols {
			t.Run(tc.name+", "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newTestServer()
					runs := 0
					var keys []any
					add := func(name string, hints *mcp.ToolAnnotations) {
						s.AddTool(&mcp.Tool{Name: name, Annotations: hints, InputSchema: map[string]any{"type": "object"}},
							func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
								runs++
								return textResult(fmt.Sprint("run ", runs)), nil
							})
					}
					add("idempotent", &mcp.ToolAnnotations{IdempotentHint: true})
					add("reads", &mcp.ToolAnnotations{ReadOnlyHint: true})
					add("writes", nil)
					if tc.idempotent {
						mcpsdk.Install(s, nil, mcpsdk.WithIdempotency())
					}
					s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
						return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
							if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
								keys = append(keys, p.Meta[request.IdempotencyKey])
							}
							return next(ctx, method, req)
						}
					})
					c := newTestClient(&mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}})
					mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: 10 * time.Second}, nil)
					mcpsdk.Retry(c, request.Backoff{}, tc.methods...)
					clientSide, serverSide := mcp.NewInMemoryTransports()
					ss, err := s.Connect(t.Context(), serverSide, nil)
					if err != nil {
						t.Fatal(err)
					}
					cs, err := c.Connect(t.Context(), &lossy{clientSide, 2}, &mcp.ClientSessionOptions{ProtocolVersion: version})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = cs.Close(); _ = ss.Wait() }()
					if !tc.unlisted {
						if _, err := cs.ListTools(t.Context(), nil); err != nil {
							t.Fatal(err)
						}
					}
					if tc.changed {
						add("new", nil)
						time.Sleep(time.Second)
					}
					params := &mcp.CallToolParams{Name: tc.tool}
					if tc.key != "" {
						params.Meta = mcp.Meta{request.IdempotencyKey: tc.key}
					}
					res, err := cs.CallTool(t.Context(), params)
					synctest.Wait()
					if tc.tries == 1 {
						timedOut(t, err, "tools/call")
						if keys[0] != nil {
							t.Errorf("a call that is not sent again has the key %v", keys[0])
						}
					} else if want := fmt.Sprint("run ", tc.runs); err != nil || res.Content[0].(*mcp.TextContent).Text != want {
						t.Errorf("%v, %v, want %s", res, err, want)
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
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		runs := 0
		addTool(s, "slow", func(ctx context.Context, _ func(float64, string)) error {
			if runs++; runs > 1 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		mcpsdk.Install(s, nil, mcpsdk.WithIdempotency())
		c := newTestClient(nil)
		mcpsdk.Limit(c, mcpsdk.ClientLimits{Timeout: time.Second}, nil)
		cs := connectClient(t, c, s, protocol2025)
		for i := range 3 {
			_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "slow", Meta: mcp.Meta{request.IdempotencyKey: "k"}})
			if (err == nil) != (i > 0) {
				t.Errorf("call %d: %v", i, err)
			}
			time.Sleep(time.Second)
		}
		if runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}
