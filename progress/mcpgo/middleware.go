package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// Install runs every tool call of s as an execution under the limits of o. In the tool's context, package heartbeat and
// [progress.Report] renew the idle limit, and reach the client as notifications if its request has a progress token. A
// server needs nothing else:
//
//	mcpgo.Install(s, &mcpgo.Options{Limits: &timeout.Config{Total: time.Hour, Idle: 5 * time.Minute}})
//
// The client gets from a tool that returns in time its result or its error as mcp-go sends it: an error becomes a JSON-RPC
// error with the code -32603. From a tool that was stopped, or that returns an error in which errors.As finds a
// [*timeout.Error], such as that of [progress.Await], it gets what [SetResult] makes of the error and of what the tool
// returned; and so it does from one that panics or calls [runtime.Goexit].
//
// If a tool returns questions to a person as InputRequests, a client before 2026-07-28 is asked while the call runs, as by
// [progress.Await]; then the tool is called again with the answers, in the same execution.
//
// Call Install before s serves, and after server.WithHooks, if that is used: it adds hooks to those of s, for what a
// middleware of mcp-go cannot know. Middleware that was added before is not under the limits; middleware that is added
// later is. Install panics with a [*timeout.ConfigError] if s is nil or o contradicts itself.
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
	if all.Offered {
		all.answerTasks(s, hooks)
	}
	if all.Continuation != nil {
		all.continueIn(s, hooks)
	}
	if all.Hosts {
		all.greet(hooks)
	}
	if all.Declare {
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
			// mcp-go cancels the context of a task when it has answered with the task's handle, at
			// which no tool is done, and none could even be started. What the tool says is no part of
			// that answer.
			ctx = context.WithoutCancel(ctx)
			if streamable(server.ClientSessionFromContext(ctx)) {
				ctx = context.WithValue(ctx, wireKey{}, nil)
			}
		case s.watch == nil || s.Tasks == nil: // without Install nobody answers for a task
		default:
			if _, waits := s.Settings(request.Params.Name); !waits {
				return s.outlive(ctx, id, request, next)
			}
		}
		return s.supervise(ctx, id, nil, request, next)
	})
}

// supervise runs a call under its limits, and returns what the client gets of it.
func (s *settings) supervise(ctx context.Context, id string, run *adapter.Task, request mcp.CallToolRequest, next server.ToolHandlerFunc) (*mcp.CallToolResult, error) {
	n := newNotifications(ctx, run, request.Header)
	if outer := toolcall.FromContext(ctx); id == "" && outer != nil && outer.Session == n.session {
		id = outer.RequestID // of a Handler under Install
	}
	calls, waits := s.Settings(request.Params.Name)
	call := toolcall.Call{
		Tool: request.Params.Name, Session: n.session, Token: token(request.Params.Meta), Send: n.send,
		Arguments: request.Params.Arguments, Answered: n.answered(), Observer: run.Observer(), Outlives: run != nil || waits,
		RequestID: id, SessionID: sessionIDOf(n.session),
	}
	if request.Params.Meta != nil {
		call.Meta = request.Params.Meta.AdditionalFields
	}
	var near *toolcall.Outcome
	call.NearLimit = func(o toolcall.Outcome) { near = &o }
	res, err := toolcall.Do(ctx, calls, call, func(ctx context.Context) (*mcp.CallToolResult, error) {
		res, err := s.callWithAnswers(ctx, request, next)
		if err == nil {
			res, err = encodable(res)
		}
		if err == nil && res != nil && res.IsError {
			err = toolcall.ErrResult
		}
		return res, err
	})
	n.end()
	if err == toolcall.ErrResult {
		err = nil
	}
	res, err = answer(res, err)
	return nearLimit(res, near), err
}

// encodable returns a result whose structured content and _meta can be sent, and encodes them under the limits of the tool:
// mcp-go encodes it on one of its few workers, where what blocks is never answered and what panics ends the process.
func encodable(r *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	if r == nil {
		return r, nil
	}
	if r.Meta != nil {
		if _, err := json.Marshal(r.Meta); err != nil {
			out := *r
			out.Meta = nil
			return &out, fmt.Errorf("the tool has returned a _meta that is not JSON: %w", err)
		}
	}
	if r.StructuredContent == nil || len(r.RawStructuredContent) > 0 {
		return r, nil
	}
	if _, done := r.StructuredContent.(json.RawMessage); done {
		return r, nil
	}
	data, err := json.Marshal(r.StructuredContent)
	out := *r // a result may be shared by calls
	if err != nil {
		out.StructuredContent = nil
		return &out, fmt.Errorf("the tool has returned a result that is not JSON: %w", err)
	}
	out.StructuredContent = json.RawMessage(data)
	return &out, nil
}
