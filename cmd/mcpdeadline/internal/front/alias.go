package front

import (
	"encoding/json"
	"strconv"

	"github.com/tooldeadline/tooldeadline/cmd/mcpdeadline/internal/jsonrpc"
	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// subscriptionKey is the key in the _meta of a notification for the id of the request that has subscribed to it.
const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

// rename returns a request of protocol 2026-07-28 with a unique id and a unique progress token, because requests of
// several clients share one session. It records the original values as an alias.
func (s *session) rename(m *jsonrpc.Message) *jsonrpc.Message {
	token := m.Fields().Meta.ProgressToken
	s.streams.Lock()
	defer s.streams.Unlock()
	s.names++
	name := "alone " + strconv.Itoa(s.names)
	raw := jsonrpc.With(m.Raw, name, "id")
	if token != nil {
		raw = jsonrpc.With(raw, name, "params", "_meta", "progressToken")
	}
	s.aliases[strconv.Quote(name)] = alias{m.ID, token}
	return jsonrpc.Parse(raw)
}

// restore returns a message about a renamed request with the original id and token. It returns a message of a session
// with an id unchanged.
func (s *session) restore(m *jsonrpc.Message) *jsonrpc.Message {
	if s.id != "" {
		return m
	}
	of := func(name json.RawMessage) (alias, bool) {
		s.streams.Lock()
		defer s.streams.Unlock()
		a, ok := s.aliases[string(name)]
		return a, ok
	}
	if m.IsResponse() {
		if a, ok := of(m.ID); ok {
			return jsonrpc.Parse(jsonrpc.With(m.Raw, a.id, "id"))
		}
		return m
	}
	var params struct {
		ProgressToken json.RawMessage
		Meta          map[string]json.RawMessage `json:"_meta"`
	}
	_ = adapter.Unmarshal(m.Params, &params)
	raw := m.Raw
	if a, ok := of(params.ProgressToken); ok && a.token != nil {
		raw = jsonrpc.With(raw, a.token, "params", "progressToken")
	}
	if a, ok := of(params.Meta[subscriptionKey]); ok {
		raw = jsonrpc.With(raw, a.id, "params", "_meta", subscriptionKey)
	}
	return jsonrpc.Parse(raw)
}
