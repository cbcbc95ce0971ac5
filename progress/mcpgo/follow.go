package mcpgo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
)

// followTasks returns a transport that sends requests over t. If the server answers a call with a task, the transport
// waits for the result of the task. Limit wraps this transport, so that its limits apply to the whole call and not to
// each poll.
func followTasks(t transport.Interface) transport.Interface {
	f := &follower{passing: passing{t}, mark: "task-" + rand.Text() + "-", calls: make(map[string]*followed), tasks: make(map[string]chan taskView)}
	return complete(f, t, nil)
}

func (f *follower) SetNotificationHandler(handler func(mcp.JSONRPCNotification)) {
	f.mu.Lock()
	f.handler = handler
	f.mu.Unlock()
	if handler == nil {
		f.Interface.SetNotificationHandler(nil)
		return
	}
	f.Interface.SetNotificationHandler(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case methodProgress:
			f.noteProgress(n.Params.AdditionalFields)
		case mcp.MethodNotificationTasksStatus:
			f.deliverStatus(n.Params.AdditionalFields)
		case mcp.MethodNotificationToolsListChanged:
			f.legacy.forget()
		}
		handler(n)
	})
}

// noteProgress records the newest progress that the client has received for a call.
func (f *follower) noteProgress(fields map[string]any) {
	progress, ok := fields["progress"].(float64)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[tokenText(fields["progressToken"])]; c != nil {
		c.seen, c.last = true, progress
	}
}

// tokenText returns a token as the key of a map. A string and a number with the same digits have different keys.
func tokenText(token any) string {
	text, _ := json.Marshal(token)
	return string(text)
}

func (f *follower) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if r.Method != string(mcp.MethodToolsCall) {
		resp, err := f.Interface.SendRequest(ctx, r)
		if said, ok := hear(r.Method, resp, err); ok {
			f.legacy.learn(r.Method, said)
		}
		return resp, err
	}
	params, modern := declared(r.Params)
	if !modern {
		if params = f.asTask(ctx, r); params == nil {
			return f.Interface.SendRequest(ctx, r)
		}
	}
	c := new(followed)
	if raw, _ := ownToken(params).(json.RawMessage); raw != nil && json.Unmarshal(raw, &c.token) == nil {
		key := tokenText(c.token)
		f.mu.Lock()
		f.calls[key] = c
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.calls[key] == c {
				delete(f.calls, key)
			}
		}()
	}
	p := &poller{f: f, request: r, meta: taskMeta(params[metaKey]), poll: defaultPoll, began: time.Now(), legacy: !modern}
	var view taskView
	if id, ok := f.resumed(params["requestState"]); ok && modern {
		view.TaskID = id
		if resp, err := p.ask(ctx, "tasks/update", id, params["inputResponses"]); err != nil || resp.Error != nil {
			if err != nil {
				p.cancel(ctx, id)
			}
			return p.ended(resp, err)
		}
	} else {
		r.Params = params
		resp, err := f.Interface.SendRequest(ctx, r)
		if !modern && err == nil && resp != nil && resp.Error != nil && resp.Error.Code == mcp.METHOD_NOT_FOUND {
			f.legacy.forget() // the tool may no longer be called as a task
		}
		if err != nil || resp == nil || resp.Error != nil || !bytes.Contains(resp.Result, []byte(`"task"`)) {
			return resp, err
		}
		if !p.handle(resp.Result, &view) {
			return resp, err
		}
		p.began = time.Now()
	}
	resp, err := p.follow(ctx, c, view)
	if err != nil {
		p.cancel(ctx, view.TaskID)
	}
	return p.ended(resp, err)
}

// resumed returns the task id in the request state of a call that answers the questions of a task. ok is false if the
// state was not created by f.
func (f *follower) resumed(state json.RawMessage) (id string, ok bool) {
	var text string
	if state == nil || json.Unmarshal(state, &text) != nil {
		return "", false
	}
	return strings.CutPrefix(text, f.mark)
}

// declared returns a copy of the params of a call with a declaration that the client supports tasks. It returns false
// before protocol 2026-07-28, which introduced that declaration.
func declared(params any) (map[string]json.RawMessage, bool) {
	fields, ok := params.(map[string]json.RawMessage) // the type that mcp-go uses from 2026-07-28 on
	if !ok {
		return nil, false
	}
	var meta map[string]json.RawMessage
	var version string
	if json.Unmarshal(fields[metaKey], &meta) != nil || json.Unmarshal(meta[mcp.MetaKeyProtocolVersion], &version) != nil || !mcp.IsModernProtocol(version) {
		return nil, false
	}
	fields = maps.Clone(fields)
	fields[metaKey] = adapter.SetMember(fields[metaKey], json.RawMessage("{}"), mcp.MetaKeyClientCapabilities, "extensions", task.ExtensionID)
	return fields, true
}

// taskMeta returns the _meta for requests about a task: the version, capabilities, client and log level that the _meta
// of its call has.
func taskMeta(raw json.RawMessage) json.RawMessage {
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(raw, &meta)
	own := make(map[string]json.RawMessage)
	for _, key := range []string{mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientCapabilities, mcp.MetaKeyClientInfo, mcp.MetaKeyLogLevel} {
		if meta[key] != nil {
			own[key] = meta[key]
		}
	}
	raw, _ = json.Marshal(own)
	return raw
}
