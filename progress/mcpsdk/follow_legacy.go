package mcpsdk

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// This file is for tasks of protocol 2025-11-25, where the client decides: it calls a tool as a task
// if the server has the capability and lists the tool so. The SDK decodes neither, so the transport
// delivers them.

// A taskServer holds what is known about the tasks of a server of protocol 2025-11-25.
type taskServer struct {
	mu      sync.Mutex
	offers  bool            // the server offers calls of tools as tasks
	listed  bool            // all of its tools are known
	dropped bool            // some of them were forgotten, so that the end of a list makes not all known
	tools   map[string]bool // whether a tool may be called as a task
}

// maxTools is how many tools are remembered. What is known of more is dropped when the next page comes.
const maxTools = 10_000

func (s *taskServer) hasTasks() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offers
}

// forget drops what is known of the tools of the server, because they have changed.
func (s *taskServer) forget() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.dropped, s.tools = false, false, nil
}

// learn sends a request, and records what the result says about tasks.
func (s *taskServer) learn(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	f := &followed{followState: followState{method: method, listening: true}}
	ctx, done := context.WithCancel(context.WithValue(ctx, followKey{}, f)) // see followConnection.Write
	defer done()
	res, err := next(ctx, method, req)
	if err != nil {
		return res, err
	}
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
				TaskSupport string `json:"taskSupport"`
			} `json:"execution"`
		} `json:"tools"`
		Next string `json:"nextCursor"`
	}
	if adapter.Unmarshal(f.now().heard, &said) != nil {
		return res, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == methodInitialize {
		s.offers = said.Version == sinceTasks && said.Capabilities.Tasks.Requests.Tools.Call != nil
		return res, nil
	}
	if len(s.tools) > maxTools {
		s.listed, s.dropped, s.tools = false, true, nil
	}
	if s.tools == nil {
		s.tools = make(map[string]bool)
	}
	for _, t := range said.Tools {
		s.tools[t.Name] = t.Execution.TaskSupport == "optional" || t.Execution.TaskSupport == "required"
	}
	s.listed = s.listed || said.Next == "" && !s.dropped
	return res, nil
}

// takesTask reports whether a tool may be called as a task. If the tool is not known yet, takesTask lists the tools: a
// client must ask for a task only if the tool allows it. It returns false if the tools cannot be listed.
func (s *taskServer) takesTask(ctx context.Context, req mcp.Request, next mcp.MethodHandler) bool {
	call, ok := req.GetParams().(*mcp.CallToolParams)
	session, isClient := req.GetSession().(*mcp.ClientSession)
	if !ok || call == nil || !isClient {
		return false
	}
	cursor := ""
	for page := range maxPages {
		s.mu.Lock()
		takes, known := s.tools[call.Name]
		known = known || s.listed
		s.mu.Unlock()
		if known || page > 0 && cursor == "" {
			return takes
		}
		req := &mcp.ClientRequest[*mcp.ListToolsParams]{Session: session, Params: &mcp.ListToolsParams{Cursor: cursor}}
		res, err := s.learn(ctx, methodList, req, next)
		list, ok := res.(*mcp.ListToolsResult)
		if err != nil || !ok || list == nil {
			return false
		}
		cursor = list.NextCursor
	}
	return false
}

// legacyRequest returns the method, the task and the params that are sent in place of a tools/call. The caller has
// the lock.
func (f *followed) legacyRequest(p, meta map[string]json.RawMessage) (method, id string, _ json.RawMessage, err error) {
	if f.method == methodCall {
		p["task"] = json.RawMessage("{}")
	} else {
		p = make(map[string]json.RawMessage)
		if p["taskId"], err = json.Marshal(f.id); err != nil {
			return "", "", nil, err
		}
		if delete(meta, progressTokenKey); len(meta) > 0 {
			if p["_meta"], err = json.Marshal(meta); err != nil {
				return "", "", nil, err
			}
		}
	}
	params, err := json.Marshal(p)
	return f.method, f.id, params, err
}

// legacyResponse returns the result or the error that the SDK gets in place of the result of a request. The caller
// has the lock.
func (f *followed) legacyResponse(method string, result json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
	var t legacyTask
	switch method {
	case methodResult:
		f.status = task.Completed
		return result, nil
	case methodCall:
		var handle struct {
			Task *legacyTask `json:"task"`
		}
		if adapter.Unmarshal(result, &handle) != nil || handle.Task == nil {
			return result, nil // the tool's own
		}
		t = *handle.Task
	default:
		if adapter.Unmarshal(result, &t) != nil || t.ID != f.id {
			t.ID = ""
		}
	}
	if t.ID == "" {
		return nil, errNoTask()
	}
	if f.id == "" && f.reader != nil {
		f.reader.add(t.ID, f)
	}
	f.id = t.ID
	f.stands(t)
	return nothingYet, nil
}

// fetchFailed handles a request whose error looks as if the server had not answered it. It reports whether err is the
// error of the task after all. The error of a task, which tasks/result is answered with, and that of a server whose
// store is away look alike, if they have the code -32603: it is the task's own if it comes again, and the server had
// an answer to tasks/get in between.
func (f *followed) fetchFailed(what string, err error) bool {
	var wire *jsonrpc.Error
	f.mu.Lock()
	defer f.mu.Unlock()
	answered := what == methodResult && !f.cut && !transient(err) && errors.As(err, &wire)
	if answered && f.refused {
		return true
	}
	f.refused, f.next = answered, methodGet
	return false
}
