package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// taskHooks holds the hooks by which a server offers the tasks of this package.
type taskHooks struct {
	*settings
	server *server.MCPServer
	own    atomic.Bool // the server offers tasks of mcp-go as well
}

func (s *settings) answerTasks(of *server.MCPServer, h *server.Hooks) {
	t := &taskHooks{settings: s, server: of}
	h.AddAfterInitialize(t.initialized)
	h.AddAfterDiscover(t.discovered)
	h.AddBeforeCallTool(t.called)
	h.AddOnRequestInitialization(t.requested)
}

const legacyVersion = string(task.Legacy)

func (t *taskHooks) initialized(ctx context.Context, _ any, _ *mcp.InitializeRequest, res *mcp.InitializeResult) {
	if wireOf(ctx, server.ClientSessionFromContext(ctx)) == nil {
		return
	}
	t.own.Store(res.Capabilities.Tasks != nil)
	if res.ProtocolVersion != legacyVersion {
		return
	}
	c := t.client(ctx)
	none := new(struct{})
	offer := &mcp.TasksCapability{Cancel: none, Requests: new(mcp.TaskRequestsCapability)}
	_ = json.Unmarshal([]byte(`{"tools":{"call":{}}}`), offer.Requests) // its types have no names
	if c.Principal != "" || c.Session != "" {                           // otherwise adapter.Serve lists no tasks
		offer.List = none
	}
	res.Capabilities.Tasks = offer
}

func (t *taskHooks) discovered(ctx context.Context, _ any, _ *mcp.DiscoverRequest, res *mcp.DiscoverResult) {
	if wireOf(ctx, server.ClientSessionFromContext(ctx)) == nil {
		return
	}
	res.Capabilities.Tasks = nil // a capability of protocol 2025-11-25 only
	res.Capabilities.Extensions = withExtension(res.Capabilities.Extensions, task.ExtensionID, struct{}{})
}

// called moves the "task" from the params of a call to its _meta, where taskParam finds it, if the call may become a
// task of this package. With a "task" in the params, mcp-go would run the call as a task of its own.
func (t *taskHooks) called(ctx context.Context, _ any, r *mcp.CallToolRequest) {
	if r.Params.Meta != nil {
		delete(r.Params.Meta.AdditionalFields, askedKey)
	}
	session := server.ClientSessionFromContext(ctx)
	if r.Params.Task == nil || wireOf(ctx, session) == nil {
		return
	}
	tool := t.server.GetTool(r.Params.Name)
	if with, ok := session.(server.SessionWithTools); ok {
		if own, ok := with.GetSessionTools()[r.Params.Name]; ok {
			tool = &own
		}
	}
	if tool == nil {
		return // the tool was added with AddTaskTool, or does not exist
	}
	if support := tool.Tool.Execution; support != nil {
		calls, _ := t.Settings(r.Params.Name)
		soft, _ := calls.Policy.Soft(r.Params.Name)
		if support.TaskSupport == mcp.TaskSupportRequired || soft == 0 && support.TaskSupport == mcp.TaskSupportOptional {
			return
		}
	}
	asked := r.Params.Task
	r.Params.Task = nil
	if r.Params.Meta == nil {
		r.Params.Meta = new(mcp.Meta)
	}
	r.Params.Meta.SetMetaField(askedKey, asked)
}

// requested answers requests about tasks, and refuses a client that subscribes to tasks without declaring that it
// supports them: it returns a stand-in. It returns nil for every request that mcp-go has to answer. mcp-go calls it
// after it has parsed the message and found the session.
func (t *taskHooks) requested(ctx context.Context, _, message any) error {
	raw, _ := message.(json.RawMessage)
	if !bytes.Contains(raw, []byte(`"task`)) { // the declaration in the _meta of each request, …/tasks", does not match
		return nil
	}
	w := wireOf(ctx, server.ClientSessionFromContext(ctx))
	if w == nil {
		return nil
	}
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if adapter.Unmarshal(raw, &m) != nil {
		return nil
	}
	listen := m.Method == string(mcp.MethodSubscriptionsListen)
	if !listen && !strings.HasPrefix(m.Method, "tasks/") {
		return nil
	}
	var p requestParams
	_ = adapter.Unmarshal(m.Params, &p)
	c := t.client(ctx)
	if v := p.version(); mcp.IsModernProtocol(v) { // mcp-go reads the version after this hook
		if !mcp.IsValidProtocolVersion(v) || p.Meta.Capabilities == nil {
			return nil // mcp-go refuses the request
		}
		c.Version = v
		_, c.Declared = p.Meta.Capabilities.Extensions[task.ExtensionID]
	}
	if listen {
		if !mcp.IsModernProtocol(c.Version) || p.Notifications.TaskIDs == nil || c.Declared {
			return nil
		}
		return &standIn{w.reply(c.Version, nil, missingCapability())}
	}
	if err := p.mismatch(w.header, m.Method, c.Version, m.Params); err != nil {
		return &standIn{w.reply(c.Version, nil, err)}
	}
	fields, err := adapter.Serve(ctx, t.Tasks, nil, c, m.Method, m.Params)
	if e := (*task.Error)(nil); errors.As(err, &e) && e.Code == mcp.INVALID_PARAMS && t.own.Load() && !mcp.IsModernProtocol(c.Version) {
		return nil // the id may be that of a task of mcp-go
	}
	return &standIn{w.reply(c.Version, fields, err)}
}

// requestParams has those params of a request that requested reads.
type requestParams struct {
	TaskID        string `json:"taskId"`
	Notifications struct {
		TaskIDs []string `json:"taskIds"`
	} `json:"notifications"`
	Meta struct {
		Version      any `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities *struct {
			Extensions map[string]json.RawMessage `json:"extensions"`
		} `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
}

func (p *requestParams) version() string {
	v, _ := p.Meta.Version.(string)
	return v
}

// mismatch returns an error if the headers of a request about a task contradict its body. mcp-go checks the headers
// of the methods that it implements in the same way.
func (p *requestParams) mismatch(h http.Header, method, version string, params json.RawMessage) error {
	if h.Get(mcp.HeaderProtocolVersion) == "" || !mcp.IsModernProtocol(version) { // SSE has no such header
		return nil
	}
	if err := mcp.ValidateStandardHeaders(h.Get, version, mcp.MCPMethod(method), params); err != nil {
		return &task.Error{Code: mcp.HEADER_MISMATCH, Message: err.Error()}
	}
	if method != methodProbe && method != "tasks/update" && method != "tasks/cancel" {
		return nil // adapter.Serve refuses the method
	}
	if name, ok := mcp.DecodeHeaderValue(h.Get(mcp.HeaderName)); p.TaskID != "" && (!ok || name != p.TaskID) {
		return &task.Error{Code: mcp.HEADER_MISMATCH, Message: mcp.HeaderName + " header does not match the taskId of the body"}
	}
	return nil
}

func missingCapability() *task.Error {
	data, _ := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{task.ExtensionID: struct{}{}}}})
	return &task.Error{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "Missing required client capability", Data: data}
}

func withExtension(extensions map[string]any, name string, value any) map[string]any {
	out := make(map[string]any, len(extensions)+1)
	maps.Copy(out, extensions)
	out[name] = value
	return out
}
