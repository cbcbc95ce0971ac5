package mcpsdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/internal/sdktest"
	"github.com/tooldeadline/tooldeadline/progress/mcpsdk"
	"github.com/tooldeadline/tooldeadline/progress/request"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

func TestSDK(t *testing.T) {
	t.Parallel() // other tests wait for real processes and servers meanwhile
	sdktest.Run(t, sdktest.SDK{
		NewServer:                  func(c sdktest.Config) sdktest.Server { return newSDKServer(c) },
		NewClient:                  newSDKClient,
		Connect:                    connectSDK,
		ErrorsAreResults:           true,
		SessionsEndWithConnections: true,
		MinPoll:                    50 * ms,
		ForgetsHints:               true,
		AsksOverSSE:                true,
		Forms:                      forms(),
		Ways: []sdktest.Way{
			ownWay("HTTP, JSON", protocol2025, true, mcp.StreamableHTTPOptions{JSONResponse: true}),
			ownWay("HTTP, stateless, JSON", protocol2025, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
			ownWay("HTTP, propagated", protocol2026, false, mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
			ownWay("HTTP, JSON, "+protocol2026, protocol2026, true, mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
		},
		Code: func(err error) int {
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) {
				return 0
			}
			return int(wire.Code)
		},
		SetResult: func(err error, partial string) *sdktest.Result {
			res := new(mcp.CallToolResult)
			mcpsdk.SetResult(res, err, partial)
			return fromSDK(res)
		},
	})
}

type sdkServer struct{ *mcp.Server }

func newSDKServer(c sdktest.Config) sdkServer {
	m := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: c.PageSize, Logger: slog.New(slog.DiscardHandler)})
	for name, tool := range c.Tools {
		t := &mcp.Tool{Name: name, InputSchema: anyInput, Meta: tool.Meta}
		if tool.Idempotent || tool.ReadOnly {
			t.Annotations = &mcp.ToolAnnotations{IdempotentHint: tool.Idempotent, ReadOnlyHint: tool.ReadOnly}
		}
		if tool.Output {
			t.OutputSchema = anyInput
		}
		m.AddTool(t, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := tool.Run(ctx, callOf(req))
			return toSDK(res), err
		})
	}
	o := c.Options()
	if c.Await.Limit != 0 {
		o.Requests = &c.Await
	}
	mcpsdk.Install(m, o)
	if c.Lists != nil {
		m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					c.Lists(ctx)
				}
				return next(ctx, method, req)
			}
		})
	}
	return sdkServer{m}
}

func (s sdkServer) Serve(ctx context.Context, in io.Reader, out io.Writer, limit time.Duration) error {
	return mcpsdk.Serve(ctx, s.Server, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: closing{out}}, limit)
}

// closing closes what can be closed.
type closing struct{ io.Writer }

func (c closing) Close() error {
	if closer, ok := c.Writer.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

func (s sdkServer) get(*http.Request) *mcp.Server { return s.Server }

func (s sdkServer) HTTP(stateless bool) http.Handler {
	return mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(s.get, &mcp.StreamableHTTPOptions{Stateless: stateless}))
}

func ownWay(name, version string, mute bool, o mcp.StreamableHTTPOptions) sdktest.Way {
	return sdktest.Way{Name: name, Version: version, Stateless: o.Stateless, Mute: mute, Handler: func(s sdktest.Server) http.Handler {
		return mcpsdk.WrapHTTP(mcp.NewStreamableHTTPHandler(s.(sdkServer).get, &o))
	}}
}

func (s sdkServer) SSE() http.Handler { return mcpsdk.WrapHTTP(mcp.NewSSEHandler(s.get, nil)) }

func (s sdkServer) Tell(value float64) {
	for ss := range s.Sessions() {
		_ = ss.NotifyProgress(context.Background(), &mcp.ProgressNotificationParams{ProgressToken: "news", Progress: value})
	}
}

func (s sdkServer) Close() {
	for ss := range s.Sessions() {
		_ = ss.Close()
	}
}

func callOf(req *mcp.CallToolRequest) *sdktest.Call {
	c := &sdktest.Call{Token: req.Params.GetProgressToken(), Meta: req.Params.Meta, State: req.Params.RequestState, Answers: map[string]string{}}
	_ = json.Unmarshal(req.Params.Arguments, &c.Arguments)
	for key, answer := range req.Params.InputResponses {
		if a, ok := answer.(*mcp.ElicitResult); ok {
			c.Answers[key] = a.Action
		}
	}
	c.Elicit = func(ctx context.Context, message string) (string, error) {
		res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: anyInput})
		if err != nil {
			return "", err
		}
		return res.Action, nil
	}
	c.Sample = func(ctx context.Context) (string, error) {
		//lint:ignore SA1019 deprecated from 2026-07-28 on; it works with the versions before
		res, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		if err != nil {
			return "", err
		}
		return res.Model, nil
	}
	c.Notify = func(ctx context.Context, progress float64, message string) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: c.Token, Progress: progress, Message: message})
	}
	return c
}

func toSDK(r *sdktest.Result) *mcp.CallToolResult {
	if r == nil {
		return nil
	}
	res := &mcp.CallToolResult{IsError: r.IsError, StructuredContent: r.Structured, Meta: r.Meta, RequestState: r.State}
	for _, text := range r.Texts {
		res.Content = append(res.Content, &mcp.TextContent{Text: text})
	}
	for key, message := range r.Ask {
		if res.InputRequests == nil {
			res.InputRequests = mcp.InputRequestMap{}
		}
		res.InputRequests[key] = &mcp.ElicitParams{Message: message, RequestedSchema: anyInput}
	}
	return res
}

func fromSDK(res *mcp.CallToolResult) *sdktest.Result {
	if res == nil {
		return nil
	}
	return &sdktest.Result{Texts: texts(res), IsError: res.IsError, Structured: res.StructuredContent, Meta: res.Meta}
}

type sdkClient struct {
	c       *mcp.Client
	version string
	follow  bool
	cs      *mcp.ClientSession
}

func newSDKClient(c sdktest.ClientConfig) sdktest.Client {
	opts := new(mcp.ClientOptions)
	opts.Logger = slog.New(slog.DiscardHandler)
	if c.OnProgress != nil {
		opts.ProgressNotificationHandler = func(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.OnProgress(ctx, req.Params.ProgressToken, req.Params.Progress, req.Params.Message)
		}
	}
	if c.OnTold != nil {
		opts.ProgressNotificationHandler = func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { c.OnTold(req.Params.Progress) }
	}
	if c.OnChanged != nil {
		opts.ToolListChangedHandler = func(context.Context, *mcp.ToolListChangedRequest) { c.OnChanged() }
	}
	if c.Elicit != nil {
		opts.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: c.Elicit(ctx, req.Params.Message), Content: map[string]any{}}, nil
		}
	}
	m := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opts)
	mcpsdk.Limit(m, c.Options())
	return &sdkClient{c: m, version: c.Version, follow: c.Follow}
}

func connectSDK(ctx context.Context, c sdktest.ConnectConfig, open func() (io.Reader, io.WriteCloser, error)) (func(), error) {
	m := newTestClient(nil)
	if c.Limited {
		mcpsdk.Limit(m, &request.Options{Limits: &request.Limits{Timeout: time.Second}})
	}
	opts := &mcpsdk.ConnectOptions{Backoff: c.Backoff, Failed: c.Failed, Session: &mcp.ClientSessionOptions{ProtocolVersion: protocol2025}}
	if c.Tools != nil {
		opts.Tools = func(tools []*mcp.Tool) {
			var names []string
			for _, t := range tools {
				names = append(names, t.Name)
			}
			c.Tools(names)
		}
	}
	cs, err := mcpsdk.Connect(ctx, m, func() (mcp.Transport, error) {
		in, out, err := open()
		return &mcp.IOTransport{Reader: io.NopCloser(in), Writer: out}, err
	}, opts)
	return func() { _ = cs.Close() }, err
}

func (c *sdkClient) Connect(ctx context.Context, in io.Reader, out io.WriteCloser) error {
	return c.connect(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: out})
}

func (c *sdkClient) ConnectHTTP(ctx context.Context, url string, hc *http.Client) error {
	return c.connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: hc, MaxRetries: -1})
}

func (c *sdkClient) connect(ctx context.Context, tr mcp.Transport) (err error) {
	if c.follow {
		tr = mcpsdk.WrapClientTransport(tr)
	}
	c.cs, err = c.c.Connect(ctx, tr, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
	return err
}

func (c *sdkClient) Call(ctx context.Context, tool string, token any, meta map[string]any) (*sdktest.Result, error) {
	p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}, Meta: meta}
	if token != nil {
		p.SetProgressToken(token)
	}
	res, err := c.cs.CallTool(ctx, p)
	return fromSDK(res), err
}

func (c *sdkClient) Request(ctx context.Context, method string) (names []string, err error) {
	switch method {
	case "tools/list":
		var res *mcp.ListToolsResult
		if res, err = c.cs.ListTools(ctx, nil); err == nil {
			for _, tool := range res.Tools {
				names = append(names, tool.Name)
			}
		}
	case "resources/read":
		_, err = c.cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///r"})
	case "ping":
		err = c.cs.Ping(ctx, nil)
	}
	return names, err
}

func (c *sdkClient) Close() { _ = c.cs.Close() }

// forms are the ways to write a tool that fails, and to have it under a policy.
func forms() map[string]func(string, *policy.Policy, func(context.Context) error) sdktest.Server {
	type fails = func(context.Context) error
	typed := func(fail fails) mcp.ToolHandlerFor[struct{}, any] {
		return func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, fail(ctx)
		}
	}
	schema := func(fail fails) mcp.ToolHandlerFor[struct{}, found] {
		return func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, found, error) {
			return nil, found{}, fail(ctx)
		}
	}
	raw := func(s *mcp.Server, name string, result func(ctx context.Context, res *mcp.CallToolResult)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: anyInput}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res := new(mcp.CallToolResult)
			result(ctx, res)
			return res, nil
		})
	}
	all := make(map[string]func(string, *policy.Policy, fails) sdktest.Server)
	for form, add := range map[string]func(*mcp.Server, *mcp.Tool, *policy.Policy, fails){
		"SetError": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			raw(s, tool.Name, func(ctx context.Context, res *mcp.CallToolResult) { res.SetError(fail(ctx)) })
			mcpsdk.Install(s, &mcpsdk.Options{Policy: p})
		},
		"SetResult of what failed": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			raw(s, tool.Name, func(ctx context.Context, res *mcp.CallToolResult) {
				err := fail(ctx)
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				mcpsdk.SetResult(res, err, "")
			})
			mcpsdk.Install(s, &mcpsdk.Options{Policy: p})
		},
		"typed": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			mcp.AddTool(s, tool, typed(fail))
			mcpsdk.Install(s, &mcpsdk.Options{Policy: p})
		},
		"typed with a schema": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			mcp.AddTool(s, tool, schema(fail))
			mcpsdk.Install(s, &mcpsdk.Options{Policy: p})
		},
		"Handler": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			mcp.AddTool(s, tool, mcpsdk.Handler(typed(fail), &mcpsdk.Options{Policy: p}))
		},
		"Handler with a schema": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			mcp.AddTool(s, tool, mcpsdk.Handler(schema(fail), &mcpsdk.Options{Policy: p}))
		},
		"Handler within Install": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			mcp.AddTool(s, tool, mcpsdk.Handler(typed(fail), &mcpsdk.Options{Policy: p}))
			mcpsdk.Install(s, nil)
		},
		"Handler with a schema within Install": func(s *mcp.Server, tool *mcp.Tool, p *policy.Policy, fail fails) {
			mcp.AddTool(s, tool, mcpsdk.Handler(schema(fail), &mcpsdk.Options{Policy: p}))
			mcpsdk.Install(s, nil)
		},
	} {
		all[form] = func(name string, p *policy.Policy, fail func(context.Context) error) sdktest.Server {
			s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			add(s, &mcp.Tool{Name: name}, p, fail)
			return sdkServer{s}
		}
	}
	return all
}
