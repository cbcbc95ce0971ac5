package mcpgo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/progress/toolcall"
	"github.com/tooldeadline/tooldeadline/timeout"
)

// continueIn adds the wait tool and the hooks that a continuation needs.
func (s *settings) continueIn(of *server.MCPServer, h *server.Hooks) {
	h.AddAfterListTools(func(_ context.Context, _ any, _ *mcp.ListToolsRequest, res *mcp.ListToolsResult) {
		for i := range res.Tools {
			t := &res.Tools[i]
			limits, err := s.calls.Declaration(t.Name)
			soft, _ := s.calls.Policy.Soft(t.Name)
			if err == nil && s.Continuation.Unlisted(timeout.Config{Total: limits.Total, Idle: limits.Idle, Grace: limits.Grace}, soft) {
				t.OutputSchema, t.RawOutputSchema = mcp.ToolOutputSchema{}, nil
			}
		}
	})
	h.AddOnUnregisterSession(func(ctx context.Context, session server.ClientSession) {
		if streamable(session) && ctx.Err() != nil {
			return // over Streamable HTTP a stream beside the calls has ended, and not the session
		}
		if id := session.SessionID(); id != "" {
			adapter.EndSession(s.Tasks, id)
		}
	})
	raw, _ := json.Marshal(s.Continuation.Definition())
	var definition mcp.Tool
	if err := json.Unmarshal(raw, &definition); err != nil {
		panic("mcpgo: the wait tool: " + err.Error())
	}
	of.AddTool(definition, s.wait)
}

// isWait reports whether a call is one of the wait tool, which is not to be stopped itself.
func (s *settings) isWait(name string) bool {
	return s.Continuation != nil && name == s.Continuation.Name()
}

// wait is the wait tool.
func (s *settings) wait(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	arguments, err := json.Marshal(request.GetRawArguments())
	if err != nil {
		return nil, err
	}
	answers := make(map[string]json.RawMessage, len(request.Params.InputResponses))
	for key, r := range request.Params.InputResponses {
		if answers[key], err = json.Marshal(r); err != nil {
			return nil, err
		}
	}
	fields, err := s.Continuation.Wait(ctx, s.Tasks, s.client(ctx), arguments, answers)
	if err == nil {
		return resultOf(fields)
	}
	var refused *task.Error
	if w := wireOf(ctx, server.ClientSessionFromContext(ctx)); w != nil && errors.As(err, &refused) {
		return w.refuse(s.client(ctx).Version, refused), nil
	}
	return nil, err
}

// unlimited are the settings of the wait tool.
func (s *settings) unlimited() *settings {
	own := *s
	own.calls = toolcall.Settings{
		Policy: s.calls.Policy, Interval: s.calls.Interval,
		Limits: new(timeout.Config), Options: s.calls.Options,
	}
	return &own
}
