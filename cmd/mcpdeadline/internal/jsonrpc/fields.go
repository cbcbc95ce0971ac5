package jsonrpc

import (
	"errors"
	"fmt"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Fields returns the fields that the proxy uses of the params of a message of the host. It parses the params, which may
// be large, only once. If other parsers may find different values for a key that the proxy uses, it sets Ambiguous.
func (m *Message) Fields() *Fields {
	if m.fields != nil {
		return m.fields
	}
	m.fields = new(Fields)
	if len(m.Params) == 0 {
		return m.fields
	}
	var into any = m.fields
	switch { // only keys that the proxy uses for the method may make the message ambiguous
	case m.Method == "tools/call", m.Method == "notifications/cancelled", IsTaskMethod(m.Method):
	case m.Method == "resources/read", m.Method == "prompts/get":
		into = &struct {
			Name *string
			URI  *string `json:"uri"`
			Meta *Meta   `json:"_meta"`
		}{&m.fields.Name, &m.fields.URI, &m.fields.Meta}
	case m.Method == "initialize":
		into = &struct {
			Client *Client `json:"clientInfo"`
			Meta   *Meta   `json:"_meta"`
		}{&m.fields.Client, &m.fields.Meta}
	default:
		into = &struct {
			Meta *Meta `json:"_meta"`
		}{&m.fields.Meta}
	}
	if err := adapter.Unmarshal(m.Params, into); m.Ambiguous == nil && errors.As(err, new(*adapter.AmbiguousError)) {
		m.Ambiguous = fmt.Errorf("params: %w", err)
	}
	return m.fields
}

// IsTaskMethod reports whether a method is a request about a task, such as tasks/get.
func IsTaskMethod(method string) bool {
	switch method {
	case "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update":
		return true
	}
	return false
}

// StandsAlone returns the protocol version in the _meta of a message, or "" if there is none. From protocol 2026-07-28
// on, each request has it. name is the tool, the prompt, the URI or the task id of the request, or "".
func StandsAlone(m *Message) (version, name string) {
	params := m.Fields()
	switch {
	case m.Method == "resources/read":
		name = params.URI
	case IsTaskMethod(m.Method):
		name = params.TaskID
	default:
		name = params.Name
	}
	return params.Meta.Version, name
}

// Cancels returns the id of the request that m cancels, or "" if m is not notifications/cancelled or has no id.
func Cancels(m *Message) string {
	if m.Method != "notifications/cancelled" {
		return ""
	}
	return string(m.Fields().RequestID)
}
