package mcpgo

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/timeout"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// Install runs every tool call of s as an execution under the limits of o. In the tool's context, package heartbeat and
// [progress.Report] renew the idle limit, and reach the client as notifications if its request has a progress token. A
// server needs nothing else:
//
//	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Minute}})
//
// If a tool returns in time, the client gets its result or error as mcp-go sends it: an error becomes a JSON-RPC error
// with the code -32603. If a tool is stopped, panics, calls [runtime.Goexit], or returns an error in which errors.As
// finds a [*timeout.Error], such as that of [progress.Await], the client gets the result that [SetResult] makes of the
// error and of the result that the tool returned.
//
// If a tool returns questions to a person as InputRequests, a client before 2026-07-28 is asked while the call runs,
// as by [progress.Await]; then the tool is called again with the answers, in the same execution, for at most 10
// rounds of questions.
//
// Call Install before s serves, and after server.WithHooks, if that is used: Install adds hooks to those of s, because
// mcp-go does not pass everything to a middleware. Middleware that was added before is not under the limits; middleware
// that is added later is. Install panics with a [*timeout.ConfigError] if s is nil or o contradicts itself.
func Install(s *server.MCPServer, o *Options) {
	if s == nil {
		panic(&timeout.ConfigError{Key: "server", Value: "nil", Accepted: "a server"})
	}
	all := ofServer(o)
	w := new(watch)
	hooks := s.GetHooks()
	if hooks == nil {
		hooks = new(server.Hooks)
		server.WithHooks(hooks)(s)
	}
	w.observe(hooks)
	all.watch = w
	if all.offered {
		all.answerTasks(s, hooks)
	}
	if all.Continuation != nil {
		all.continueIn(s, hooks)
	}
	if all.Declare || all.Tasks != nil {
		all.declareIn(hooks)
	}
	s.Use(all.wrap)
}

func (s *settings) wrap(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return s.once(func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var id string // of the request
		if s.watch != nil {
			var release func()
			id = takeRequestID(&request)
			ctx, release = s.watch.untilGone(ctx, id)
			defer release()
		}
		switch {
		case request.Params.Task != nil:
			// mcp-go makes this call a task of its own, and cancels the context when it has sent the
			// handle, before any tool has returned. Over Streamable HTTP the wire is removed, because
			// the progress of the tool must not go into the response with the handle.
			ctx = context.WithoutCancel(ctx)
			if streamable(server.ClientSessionFromContext(ctx)) {
				ctx = context.WithValue(ctx, wireKey{}, nil)
			}
		case s.watch == nil || s.Tasks == nil: // without Install, no hook answers requests about tasks
		default:
			if _, waits := s.Settings(request.Params.Name); !waits {
				return s.outlive(ctx, id, request, next)
			}
		}
		return s.supervise(ctx, id, nil, request, next)
	})
}

// Handler returns h under the limits of o, as [Install] does for all tools of a server; use one or the other. Convert a
// typed handler to a ToolHandlerFunc first:
//
//	s.AddTool(tool, mcpgo.Handler(mcp.NewTypedToolHandler(search), &mcpgo.Options{Limits: &timeout.Config{Total: time.Minute}}))
//
// mcp.NewStructuredToolHandler turns the error of its handler into text, even after the handler was
// stopped; the text that the client gets still begins with the message of the limit. Handler panics with a
// [*timeout.ConfigError] if h is nil, or if o has a field that only Install accepts.
func Handler(h server.ToolHandlerFunc, o *Options) server.ToolHandlerFunc {
	if h == nil {
		panic(&timeout.ConfigError{Key: "handler", Value: "nil", Accepted: "a handler"})
	}
	return (&settings{Server: adapter.NewServer(o, true)}).wrap(h)
}

// declareIn adds the hooks that declare limits, and that log the host of a client when it connects. mcp-go calls each
// hook with a result that only its request uses; the hooks copy the values behind pointers in it, because the server
// shares those.
func (s *settings) declareIn(h *server.Hooks) {
	h.AddAfterListTools(s.listed)
	h.AddAfterInitialize(func(_ context.Context, _ any, r *mcp.InitializeRequest, res *mcp.InitializeResult) {
		s.Initialized(adapter.Caller{Name: r.Params.ClientInfo.Name})
		s.declareFor(&res.Capabilities)
	})
	h.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, res *mcp.DiscoverResult) {
		s.Initialized(clientOf(ctx))
		s.declareFor(&res.Capabilities)
	})
}

// listed adds to a list of tools what the options say of each tool.
func (s *settings) listed(ctx context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
	client := clientOf(ctx)
	tasks := s.offered && wireOf(ctx, server.ClientSessionFromContext(ctx)) != nil
	for i := range res.Tools {
		t := &res.Tools[i]
		limits, support, unlisted := s.Listing(t.Name, client)
		if limits != nil {
			if !tasks {
				limits.Soft = 0
			}
			t.Meta = withField(t.Meta, policy.DeclarationKey, *limits)
		}
		if unlisted {
			t.OutputSchema, t.RawOutputSchema = mcp.ToolOutputSchema{}, nil
		}
		switch {
		case !tasks:
		case mcp.IsModernProtocol(client.Version):
			t.Execution = nil
		case support != "":
			t.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupport(support)}
		}
	}
}

func (s *settings) declareFor(c *mcp.ServerCapabilities) {
	if limits, _, _ := s.Listing("", adapter.Caller{}); limits != nil {
		c.Extensions = withExtension(c.Extensions, policy.DeclarationKey, *limits)
	}
}

// once returns a handler that calls next only once for repeated calls, with [adapter.Repeat].
func (s *settings) once(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	if !s.Idempotency {
		return next
	}
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		p := r.Params
		if p.Meta == nil || p.Task != nil {
			return next(ctx, r)
		}
		content := []any{p.Name, p.Arguments, p.InputResponses, p.RequestState}
		res, err := adapter.Repeat(ctx, s.Server, p.Meta.AdditionalFields, func() adapter.Caller { return s.client(ctx) }, content,
			func() (*mcp.CallToolResult, error) { return next(ctx, r) })
		if res != nil {
			out := *res // mcp-go may modify the result
			res = &out
		}
		return res, err
	}
}
