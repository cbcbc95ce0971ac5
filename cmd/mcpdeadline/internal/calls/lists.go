package calls

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
	"github.com/tooldeadline/tooldeadline/progress/task"
	"github.com/tooldeadline/tooldeadline/timeout/policy"
)

// amend returns the server's answer to a request of the given method. It adds the features of the proxy to the
// capabilities and the list of tools, and returns any other answer unchanged.
func (s *Session) amend(method string, m *jsonrpc.Message) *jsonrpc.Message {
	if m.Error != nil {
		return m
	}
	raw := m.Raw
	switch method {
	case "initialize", "server/discover":
		raw = s.introduced(method, m)
	case "tools/list":
		if s.Declare || s.handles() != nil {
			raw = s.listed(m)
		}
	}
	if bytes.Equal(raw, m.Raw) {
		return m
	}
	return jsonrpc.Parse(raw)
}

// introduced returns an answer to initialize or server/discover with the features of the proxy added to the
// capabilities. It also records the capabilities in s.memory.
func (s *Session) introduced(method string, m *jsonrpc.Message) json.RawMessage {
	var result struct {
		ProtocolVersion string
		Capabilities    map[string]json.RawMessage
		ServerInfo      struct{ Name string }
	}
	_ = adapter.Unmarshal(m.Result, &result)
	var extensions map[string]json.RawMessage
	_ = adapter.Unmarshal(result.Capabilities["extensions"], &extensions)
	s.mu.Lock()
	s.lists = make(map[string]bool)
	for _, list := range []string{"tools", "resources", "prompts"} {
		_, s.lists[list] = result.Capabilities[list]
	}
	s.ownTasks = result.Capabilities["tasks"] != nil || extensions[task.ExtensionID] != nil
	if method == "initialize" {
		s.version = result.ProtocolVersion
		s.offer(result.ServerInfo.Name)
	}
	has := s.lists["tools"] && !s.ownTasks
	s.mu.Unlock()
	switch {
	case s.handles() == nil || !has:
	case method == "server/discover":
		return jsonrpc.With(m.Raw, map[string]any{}, "result", "capabilities", "extensions", task.ExtensionID)
	case result.ProtocolVersion == string(task.Legacy):
		return jsonrpc.With(m.Raw, json.RawMessage(`{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`), "result", "capabilities", "tasks")
	}
	return m.Raw
}

// listed returns an answer to tools/list with the declared limits, the support for tasks and, on the last page, the
// tools of the proxy.
func (s *Session) listed(m *jsonrpc.Message) json.RawMessage {
	var result struct {
		Tools      []json.RawMessage
		NextCursor any // a string, except on the last page
	}
	if adapter.Unmarshal(m.Result, &result) != nil || result.Tools == nil {
		return m.Raw
	}
	s.mu.Lock()
	legacy, tools := s.version == string(task.Legacy) && !s.ownTasks, s.waiter
	s.mu.Unlock()
	fits := s.profile()
	for i, tool := range result.Tools {
		var named struct {
			Name      string
			Execution struct{ TaskSupport string }
		}
		_ = adapter.Unmarshal(tool, &named)
		soft, taskOnly := fits.Soft(named.Name)
		limits, err := fits.Limits.Declaration(named.Name)
		if err != nil {
			continue
		}
		limits.Soft = soft
		if limits.Progress = fits.Keep; s.Declare {
			tool = jsonrpc.With(tool, limits, "_meta", policy.DeclarationKey)
		}
		if tools != nil && (soft != 0 || taskOnly) {
			if legacy && named.Execution.TaskSupport == "" {
				support := "optional"
				if taskOnly {
					support = "required"
				}
				tool = jsonrpc.With(tool, support, "execution", "taskSupport")
			}
			config, _ := fits.Limits.Policy.Resolve(named.Name, 0)
			if s.name != "" && tools.Unlisted(config, soft) {
				tool = adapter.SetMember(tool, nil, "outputSchema")
			}
		}
		if tools != nil && (named.Name == tools.Tool || named.Name == tools.Cancel) {
			s.mu.Lock()
			s.shadowed[named.Name] = true
			s.mu.Unlock()
		}
		result.Tools[i] = tool
	}
	if next, _ := result.NextCursor.(string); tools != nil && s.name != "" && next == "" {
		definitions := tools.Definitions()
		s.mu.Lock()
		theirs := maps.Clone(s.shadowed)
		s.mu.Unlock()
		for _, name := range []string{tools.Tool, tools.Cancel} {
			if !theirs[name] {
				result.Tools = append(result.Tools, jsonrpc.Encode(definitions[name]))
			}
		}
	}
	return jsonrpc.With(m.Raw, result.Tools, "result", "tools")
}
