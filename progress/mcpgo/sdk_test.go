package mcpgo_test

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress"
	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpgo"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

func TestSDK(t *testing.T) {
	sdktest.Run(t, sdktest.SDK{
		NewServer:           func(c sdktest.Config) sdktest.Server { return newSDKServer(c) },
		NewClient:           newSDKClient,
		Connect:             connectSDK,
		FaultStatus:         true,
		LosesAnswersOverSSE: true,
		LimitsWholeTask:     true,
		MinPoll:             10 * ms,
		ElicitAwaits:        true,
		DropsMeta:           true,
		OneLine:             true,
		TasksOverSSE:        true,
		CarriesIDs:          true,
		Forms:               forms(),
		Ways: []sdktest.Way{{Name: "HTTP, event store", Version: sdktest.Old, Handler: func(s sdktest.Server) http.Handler {
			return s.(*sdkServer).handler(server.WithEventStore(server.NewInMemoryEventStore()))
		}}},
		Code: func(err error) int {
			if stop := (*request.Error)(nil); !errors.As(err, &stop) || !stop.Timeout() || !errors.Is(err, mcp.ErrRequestInterrupted) {
				return 0
			}
			return request.CodeTimeout
		},
		SetResult: func(err error, partial string) *sdktest.Result {
			res := new(mcp.CallToolResult)
			mcpgo.SetResult(res, err, partial)
			return fromSDK(res)
		},
	})
}

type sdkServer struct {
	*server.MCPServer
	http []*server.StreamableHTTPServer
	sse  []*server.SSEServer
}

func newSDKServer(c sdktest.Config) *sdkServer {
	opts := []server.ServerOption{server.WithToolCapabilities(true), server.WithElicitation()}
	if c.PageSize > 0 {
		opts = append(opts, server.WithPaginationLimit(c.PageSize))
	}
	if c.Lists != nil {
		opts = append(opts, server.WithToolFilter(func(ctx context.Context, tools []mcp.Tool) []mcp.Tool { c.Lists(ctx); return tools }))
	}
	m := server.NewMCPServer("test", "1", opts...)
	m.EnableSampling()
	mcpgo.Install(m, c.Options())
	for name, tool := range c.Tools {
		t := mcp.NewTool(name)
		if tool.Meta != nil {
			t.Meta = &mcp.Meta{AdditionalFields: tool.Meta}
		}
		if tool.Idempotent {
			mcp.WithIdempotentHintAnnotation(true)(&t)
		}
		if tool.ReadOnly {
			mcp.WithReadOnlyHintAnnotation(true)(&t)
		}
		if tool.Output {
			mcp.WithOutputSchema[struct {
				Files int `json:"files"`
			}]()(&t)
		}
		m.AddTool(t, func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := tool.Run(ctx, callOf(r, c.Await))
			return toSDK(res), err
		})
	}
	ownQueue(m)
	return &sdkServer{MCPServer: m}
}

// ownQueue has a server over stdio queue notifications in its bubble: mcp-go has one session over stdio for all of the
// process, with a queue that is no bubble's.
func ownQueue(m *server.MCPServer) {
	hooks := m.GetHooks()
	if hooks == nil {
		hooks = new(server.Hooks)
		server.WithHooks(hooks)(m)
	}
	queueOf := func(session server.ClientSession) *chan mcp.JSONRPCNotification {
		v := reflect.ValueOf(session).Elem()
		if v.Type().Name() != "stdioSession" {
			return nil
		}
		return (*chan mcp.JSONRPCNotification)(unsafe.Pointer(v.FieldByName("notifications").UnsafeAddr()))
	}
	hooks.AddOnRegisterSession(func(_ context.Context, session server.ClientSession) {
		if p := queueOf(session); p != nil {
			setQueue(p, make(chan mcp.JSONRPCNotification, 100))
		}
	})
	hooks.AddOnUnregisterSession(func(_ context.Context, session server.ClientSession) {
		if p := queueOf(session); p != nil {
			setQueue(p, noQueue)
		}
	})
}

// noQueue is that of a server outside of bubbles.
var noQueue = make(chan mcp.JSONRPCNotification, 100)

// setQueue sets a queue that a goroutine of a server that has ended may look at for the last time.
//
//go:norace
//go:noinline
func setQueue(p *chan mcp.JSONRPCNotification, queue chan mcp.JSONRPCNotification) { *p = queue }

func (s *sdkServer) Serve(ctx context.Context, in io.Reader, out io.Writer, limit time.Duration) error {
	std := server.NewStdioServer(s.MCPServer)
	std.SetErrorLogger(log.New(io.Discard, "", 0))
	return mcpgo.Serve(ctx, std, in, out, limit)
}

func (s *sdkServer) HTTP(stateless bool) http.Handler {
	return s.handler(server.WithStateLess(stateless))
}

func (s *sdkServer) handler(o server.StreamableHTTPOption) http.Handler {
	h := server.NewStreamableHTTPServer(s.MCPServer, o, server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)))
	s.http = append(s.http, h)
	return mcpgo.WrapHTTP(h)
}

func (s *sdkServer) SSE() http.Handler {
	h := server.NewSSEServer(s.MCPServer)
	s.sse = append(s.sse, h)
	return mcpgo.WrapHTTP(h)
}

func (s *sdkServer) Tell(value float64) {
	s.SendNotificationToAllClients("notifications/news", map[string]any{"value": value})
}

func (s *sdkServer) Close() {
	for _, h := range s.http {
		_ = h.Shutdown(context.Background())
	}
	for _, h := range s.sse {
		_ = h.Shutdown(context.Background())
	}
}

func callOf(r mcp.CallToolRequest, await progress.Wait) *sdktest.Call {
	c := &sdktest.Call{Arguments: r.GetArguments(), State: r.Params.RequestState, Answers: map[string]string{}}
	if m := r.Params.Meta; m != nil {
		c.Token, c.Meta = m.ProgressToken, m.AdditionalFields
	}
	for key := range r.Params.InputResponses {
		if a := server.ElicitationResponse(r.Params.InputResponses, key); a != nil {
			c.Answers[key] = string(a.Action)
		}
	}
	c.Elicit = func(ctx context.Context, message string) (string, error) {
		res, err := mcpgo.Elicit(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{"type": "object"}}}, await)
		if err != nil {
			return "", err
		}
		return string(res.Action), nil
	}
	c.Sample = func(ctx context.Context) (string, error) {
		res, err := mcpgo.Sample(ctx, mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{MaxTokens: 1}}, await)
		if err != nil {
			return "", err
		}
		return res.Model, nil
	}
	c.Notify = func(ctx context.Context, value float64, message string) {
		_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress",
			map[string]any{"progressToken": c.Token, "progress": value, "message": message})
	}
	return c
}

func toSDK(r *sdktest.Result) *mcp.CallToolResult {
	if r == nil {
		return nil
	}
	if r.Ask != nil {
		ask := server.NewInputRequestBuilder(r.State)
		for key, message := range r.Ask {
			ask.Elicit(key, mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		}
		return ask.ToolResult()
	}
	res := &mcp.CallToolResult{IsError: r.IsError, StructuredContent: r.Structured}
	if r.Meta != nil {
		res.Meta = &mcp.Meta{AdditionalFields: r.Meta}
	}
	for _, text := range r.Texts {
		res.Content = append(res.Content, mcp.NewTextContent(text))
	}
	return res
}

func fromSDK(res *mcp.CallToolResult) *sdktest.Result {
	if res == nil {
		return nil
	}
	r := &sdktest.Result{IsError: res.IsError, Structured: res.StructuredContent}
	for _, c := range res.Content {
		r.Texts = append(r.Texts, c.(mcp.TextContent).Text)
	}
	if res.Meta != nil {
		r.Meta = res.Meta.AdditionalFields
	}
	return r
}

type sdkClient struct {
	config sdktest.ClientConfig
	c      *client.Client
}

func newSDKClient(c sdktest.ClientConfig) sdktest.Client { return &sdkClient{config: c} }

// person answers what a server asks.
type answering func(ctx context.Context, message string) string

func (a answering) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	action := mcp.ElicitationResponseAction(a(ctx, r.Params.Message))
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: map[string]any{}}}, nil
}

func connectSDK(ctx context.Context, c sdktest.ConnectConfig, open func() (io.Reader, io.WriteCloser, error)) (func(), error) {
	opts := &mcpgo.ConnectOptions{Backoff: c.Backoff, Failed: c.Failed}
	if c.Tools != nil {
		opts.Tools = func(tools []mcp.Tool) {
			var names []string
			for _, t := range tools {
				names = append(names, t.Name)
			}
			c.Tools(names)
		}
	}
	m, _, err := mcpgo.Connect(ctx, func() (*client.Client, error) {
		in, out, err := open()
		if err != nil {
			return nil, err
		}
		var tr transport.Interface = transport.NewIO(in, out, io.NopCloser(nil))
		if c.Limited {
			tr = mcpgo.Limit(tr, &request.Options{Limits: &request.Limits{Timeout: time.Second}})
		}
		return client.NewClient(tr, client.WithProtocolVersion(sdktest.Old)), nil
	}, hello, opts)
	return func() { _ = m.Close() }, err
}

func (c *sdkClient) Connect(ctx context.Context, in io.Reader, out io.WriteCloser) error {
	return c.connect(ctx, transport.NewIO(in, out, io.NopCloser(nil)))
}

func (c *sdkClient) ConnectHTTP(ctx context.Context, url string, hc *http.Client) error {
	opts := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(hc), transport.WithHTTPLogger(slog.New(slog.DiscardHandler))}
	if c.config.OnTold != nil {
		//lint:ignore SA1019 the stream of all protocols before 2026-07-28
		opts = append(opts, transport.WithContinuousListening())
	}
	tr, err := transport.NewStreamableHTTP(url, opts...)
	if err != nil {
		return err
	}
	return c.connect(ctx, tr)
}

func (c *sdkClient) connect(ctx context.Context, tr transport.Interface) error {
	tr = mcpgo.Limit(tr, c.config.Options())
	var opts []client.ClientOption
	if c.config.Version == sdktest.Old {
		opts = append(opts, client.WithProtocolVersion(c.config.Version))
	}
	if c.config.Elicit != nil {
		opts = append(opts, client.WithElicitationHandler(answering(c.config.Elicit)))
	}
	c.c = client.NewClient(tr, opts...)
	c.c.OnNotification(func(m mcp.JSONRPCNotification) {
		f := m.Params.AdditionalFields
		switch m.Method {
		case "notifications/progress":
			if c.config.OnProgress != nil {
				progress, _ := f["progress"].(float64)
				message, _ := f["message"].(string)
				c.config.OnProgress(ctx, f["progressToken"], progress, message)
			}
		case "notifications/news":
			if c.config.OnTold != nil {
				c.config.OnTold(f["value"].(float64))
			}
		case "notifications/tools/list_changed":
			if c.config.OnChanged != nil {
				c.config.OnChanged()
			}
		}
	})
	if err := c.c.Start(ctx); err != nil {
		return err
	}
	_, err := c.c.Initialize(ctx, hello)
	return err
}

func (c *sdkClient) Call(ctx context.Context, tool string, token any, meta map[string]any) (*sdktest.Result, error) {
	r := mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}}
	if token != nil || meta != nil {
		r.Params.Meta = &mcp.Meta{ProgressToken: token, AdditionalFields: meta}
	}
	res, err := c.c.CallTool(ctx, r)
	return fromSDK(res), err
}

func (c *sdkClient) Request(ctx context.Context, method string) (names []string, err error) {
	switch method {
	case "tools/list":
		var res *mcp.ListToolsResult
		if res, err = c.c.ListTools(ctx, mcp.ListToolsRequest{}); err == nil {
			for _, tool := range res.Tools {
				names = append(names, tool.Name)
			}
		}
	case "resources/read":
		_, err = c.c.ReadResource(ctx, mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: "file:///r"}})
	case "ping":
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		err = c.c.Ping(ctx)
	}
	return names, err
}

func (c *sdkClient) Close() { _ = c.c.Close() }

// forms are the ways to write a tool that fails, and to have it under a policy.
func forms() map[string]func(string, *policy.Policy, func(context.Context) error) sdktest.Server {
	type fails = func(context.Context) error
	plain := func(fail fails) server.ToolHandlerFunc {
		return func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, fail(ctx) }
	}
	typed := func(fail fails) server.ToolHandlerFunc {
		return mcp.NewTypedToolHandler(func(ctx context.Context, _ mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, error) {
			return nil, fail(ctx)
		})
	}
	all := make(map[string]func(string, *policy.Policy, fails) sdktest.Server)
	for form, add := range map[string]func(*server.MCPServer, mcp.Tool, *policy.Policy, fails){
		"typed": func(s *server.MCPServer, tool mcp.Tool, p *policy.Policy, fail fails) {
			mcpgo.Install(s, &mcpgo.Options{Policy: p})
			s.AddTool(tool, typed(fail))
		},
		"Handler": func(s *server.MCPServer, tool mcp.Tool, p *policy.Policy, fail fails) {
			s.AddTool(tool, mcpgo.Handler(typed(fail), &mcpgo.Options{Policy: p}))
		},
		"Handler within Install": func(s *server.MCPServer, tool mcp.Tool, p *policy.Policy, fail fails) {
			mcpgo.Install(s, nil)
			s.AddTool(tool, mcpgo.Handler(plain(fail), &mcpgo.Options{Policy: p}))
		},
	} {
		all[form] = func(name string, p *policy.Policy, fail func(context.Context) error) sdktest.Server {
			s := server.NewMCPServer("test", "1")
			add(s, mcp.NewTool(name), p, fail)
			ownQueue(s)
			return &sdkServer{MCPServer: s}
		}
	}
	return all
}
