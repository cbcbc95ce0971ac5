package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// This file is for tasks of protocol 2025-11-25, where the client decides: it calls a tool as a task
// if the server has the capability and lists the tool so.

const (
	sinceTasks    = "2025-11-25"
	methodFetch   = "tasks/result"
	methodListing = string(mcp.MethodToolsList)
)

// A legacyServer is a server of protocol 2025-11-25 as far as it has tasks.
type legacyServer struct {
	mu     sync.Mutex
	offers bool            // calls of tools as tasks
	listed bool            // all of its tools are known
	tools  map[string]bool // whether a tool may be called as a task
}

// learn keeps what a result says about tasks, and returns the cursor of the next page of tools.
func (s *legacyServer) learn(method string, result json.RawMessage) (next string) {
	var said struct {
		Version      string `json:"protocolVersion"`
		Capabilities struct {
			Tasks struct {
				Requests struct {
					Tools struct {
						Call *struct{} `json:"call"`
					} `json:"tools"`
				} `json:"requests"`
			} `json:"tasks"`
		} `json:"capabilities"`
		Tools []struct {
			Name      string `json:"name"`
			Execution struct {
				TaskSupport mcp.TaskSupport `json:"taskSupport"`
			} `json:"execution"`
		} `json:"tools"`
		Next string `json:"nextCursor"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == methodListing && !s.offers || adapter.Unmarshal(result, &said) != nil {
		return ""
	}
	if method != methodListing {
		s.offers = said.Version == sinceTasks && said.Capabilities.Tasks.Requests.Tools.Call != nil
		return ""
	}
	if s.tools == nil {
		s.tools = make(map[string]bool)
	}
	for _, t := range said.Tools {
		s.tools[t.Name] = t.Execution.TaskSupport == mcp.TaskSupportOptional || t.Execution.TaskSupport == mcp.TaskSupportRequired
	}
	s.listed = s.listed || said.Next == ""
	return said.Next
}

// forget is for a server whose tools have changed.
func (s *legacyServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.tools = false, nil
}

// takes reports whether a tool may be called as a task, if that is known.
func (s *legacyServer) takes(tool string) (takes, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	takes, known = s.tools[tool]
	return takes, known || s.listed || !s.offers
}

// maxPages is the largest number of pages of a list that a client reads.
const maxPages = 100

// asTask returns the params of a call as those of a task, and nil where it is to be called plainly. It
// lists the tools where the one that is called is not known yet: a client must not ask for a task
// otherwise.
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
		if known && !takes {
			return nil
		}
		if takes {
			params["task"] = json.RawMessage("{}")
			return params
		}
		list := make(map[string]any)
		if cursor != "" {
			list["cursor"] = cursor
		}
		resp, err := f.Interface.SendRequest(ctx, transport.JSONRPCRequest{
			JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(fmt.Sprintf("%v-%s-%d", r.ID.Value(), methodListing, page)),
			Method: methodListing, Params: list,
		})
		if err != nil || resp == nil || resp.Error != nil {
			return nil
		}
		cursor = f.legacy.learn(methodListing, resp.Result)
	}
	return nil
}

// handle reads what a call was answered with, and reports whether that is a task.
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

// fetch asks for the result of a task that has ended, or that has a question, which needs a stream to
// come on and may have no other. It is done where that is how the call is answered, and else the task is
// to be asked for again. The error of the task and one of a server whose store is away look alike, if
// they have the code -32603: it is the task's own if it comes again, and the server had an answer to
// tasks/get at once in between.
func (p *poller) fetch(ctx context.Context, id string) (resp *transport.JSONRPCResponse, done bool, err error) {
	resp, err = p.send(ctx, methodFetch, id, nil)
	if ctx.Err() != nil || !lost(resp, err) {
		return resp, true, err
	}
	if err == nil && p.refused && p.lost == 0 {
		return resp, true, nil
	}
	p.refused, p.lost = err == nil, 0
	return nil, false, nil
}
