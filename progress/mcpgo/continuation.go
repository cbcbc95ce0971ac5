package mcpgo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// continueIn adds the wait tool, and the hook that ends the calls of a session.
func (s *settings) continueIn(of *server.MCPServer, h *server.Hooks) {
	h.AddOnUnregisterSession(func(ctx context.Context, session server.ClientSession) {
		if streamable(session) && ctx.Err() != nil {
			return // over Streamable HTTP only the standalone stream has ended, and not the session
		}
		if id := session.SessionID(); id != "" {
			adapter.EndSession(s.Tasks, id)
		}
	})
	raw, _ := json.Marshal(s.Continuation.Definition())
	var definition mcp.Tool
	if err := json.Unmarshal(raw, &definition); err != nil {
		panic(err) // not reached: Definition returns a valid tool
	}
	of.AddTool(definition, s.wait)
}

// wait is the handler of the wait tool. It returns the result of a continued call, or says that the call still runs.
func (s *settings) wait(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	params, err := json.Marshal(map[string]any{"arguments": request.GetRawArguments(), "inputResponses": request.Params.InputResponses})
	if err != nil {
		return nil, err
	}
	fields, err := adapter.Serve(ctx, s.Tasks, s.Continuation, s.client(ctx), string(mcp.MethodToolsCall), params)
	if err == nil {
		return resultOf(fields)
	}
	var refused *task.Error
	if w := wireOf(ctx, server.ClientSessionFromContext(ctx)); w != nil && errors.As(err, &refused) {
		return standInResult(w.reply(clientOf(ctx).Version, nil, refused)), nil
	}
	return nil, err
}
