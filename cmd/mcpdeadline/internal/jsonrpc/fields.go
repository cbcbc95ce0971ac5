package jsonrpc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// Fields reads the params of a message of the host, once: they may be large. If readers may find different values for a key
// that the proxy goes by, it sets Ambiguous.
func (m *Message) Fields() *Fields {
	if m.fields != nil {
		return m.fields
	}
	m.fields = new(Fields)
	if len(m.Params) == 0 {
		return m.fields
	}
	var meta json.RawMessage
	var err error
	switch { // their other keys are no business of the proxy
	case m.Method == "tools/call" || m.Method == "notifications/cancelled" || IsTaskMethod(m.Method):
		err = adapter.Unmarshal(m.Params, m.fields)
	case m.Method == "resources/read" || m.Method == "prompts/get":
		only := struct {
			Name string
			URI  string          `json:"uri"`
			Meta json.RawMessage `json:"_meta"`
		}{}
		err = adapter.Unmarshal(m.Params, &only)
		m.fields.Name, m.fields.URI, meta = only.Name, only.URI, only.Meta
	case m.Method == "initialize":
		only := struct {
			Client json.RawMessage `json:"clientInfo"`
			Meta   json.RawMessage `json:"_meta"`
		}{}
		err = adapter.Unmarshal(m.Params, &only)
		if only.Client != nil {
			err = cmp.Or(err, adapter.Unmarshal(only.Client, &m.fields.Client))
		}
		meta = only.Meta
	default:
		only := struct {
			Meta json.RawMessage `json:"_meta"`
		}{}
		err = adapter.Unmarshal(m.Params, &only)
		meta = only.Meta
	}
	if meta != nil {
		err = cmp.Or(err, adapter.Unmarshal(meta, &m.fields.Meta))
	}
	if m.Ambiguous == nil && errors.As(err, new(*adapter.AmbiguousError)) {
		m.Ambiguous = fmt.Errorf("params: %w", err)
	}
	return m.fields
}

// IsTaskMethod reports whether a method belongs to tasks.
func IsTaskMethod(method string) bool {
	switch method {
	case "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update":
		return true
	}
	return false
}

// StandsAlone returns the protocol version that a message states, as messages do from 2026-07-28 on,
// and the name of what the message is about.
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

// Cancels returns the id of the request that a message cancels, or "".
func Cancels(m *Message) string {
	if m.Method != "notifications/cancelled" {
		return ""
	}
	return string(m.Fields().RequestID)
}
