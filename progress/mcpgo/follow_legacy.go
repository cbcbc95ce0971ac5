package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// This file is for tasks of protocol 2025-11-25, where the client decides: it calls a tool as a task
// if the server has the capability and lists the tool so.

// asTask returns the params that make a call a task, or nil if the tool may not be called as a task, the params already
// ask for one, or the tools cannot be listed. If the tool is not known yet, asTask lists the tools: a client must ask
// for a task only if the tool allows it.
func (f *follower) asTask(ctx context.Context, r transport.JSONRPCRequest) map[string]json.RawMessage {
	data, err := json.Marshal(r.Params)
	if err != nil {
		return nil
	}
	var params map[string]json.RawMessage
	var tool string
	if json.Unmarshal(data, &params) != nil || params["task"] != nil || json.Unmarshal(params["name"], &tool) != nil {
		return nil
	}
	cursor := ""
	for page := range maxPages {
		takes, known := f.legacy.takes(tool)
		if takes {
			params["task"] = json.RawMessage("{}")
			return params
		}
		if known || page > 0 && cursor == "" {
			return nil
		}
		list := make(map[string]any)
		if cursor != "" {
			list["cursor"] = cursor
		}
		resp, err := f.Interface.SendRequest(ctx, transport.JSONRPCRequest{
			JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(fmt.Sprintf("%v-%s-%d", r.ID.Value(), methodListing, page)),
			Method: methodListing, Params: list,
		})
		said, ok := hear(methodListing, resp, err)
		if !ok {
			return nil
		}
		f.legacy.learn(methodListing, said)
		cursor = said.Next
	}
	return nil
}

// handle reads the result of a call into view, and reports whether it is the handle of a task.
func (p *poller) handle(result json.RawMessage, view *taskView) bool {
	if !p.legacy {
		return adapter.Unmarshal(result, view) == nil && view.ResultType == "task" && view.TaskID != ""
	}
	var handle struct {
		Task *taskView `json:"task"`
	}
	if adapter.Unmarshal(result, &handle) != nil || handle.Task == nil || handle.Task.TaskID == "" {
		return false
	}
	*view = *handle.Task
	return true
}
