package jsonrpc

import (
	"encoding/json"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// The error codes of JSON-RPC.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	InvalidParams  = -32602
	InternalError  = -32603
)

// Notification returns a notification; params may be nil.
func Notification(method string, params any) *Message { return Request(nil, method, params) }

// Request returns a request or, if id is nil, a notification; params may be nil.
func Request(id json.RawMessage, method string, params any) *Message {
	return Parse(Encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params,omitempty"`
	}{"2.0", id, method, params}))
}

// Result returns the answer to request id with the result v.
func Result(id json.RawMessage, v any) *Message { return answer(id, "result", v) }

// Refusal returns the answer to request id with the error bad, such as an [Error].
func Refusal(id json.RawMessage, bad any) *Message { return answer(id, "error", bad) }

// Failure returns the answer to request id with an InternalError whose message is text.
func Failure(id json.RawMessage, text string) *Message {
	return Refusal(id, Error{InternalError, text})
}

// An Error is the error of a JSON-RPC response.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func answer(id json.RawMessage, key string, v any) *Message {
	m := Parse(Encode(map[string]any{"jsonrpc": "2.0", "id": id, key: v}))
	if id != nil {
		m.ID = id // unchanged, while json.Marshal escapes characters such as < in Raw
	}
	return m
}

// With returns a copy of the message in which the member at a path of keys is v.
func (m *Message) With(v any, path ...string) *Message {
	out := Parse(With(m.Raw, v, path...))
	out.About = m.About
	return out
}

// WithID returns a copy of the message with another id.
func (m *Message) WithID(id string) *Message {
	out := m.With(json.RawMessage(id), "id")
	out.ID = json.RawMessage(id)
	return out
}

// WithMeta returns a copy of a request with a value in its _meta. The copy shares the Fields of m, which therefore do
// not contain the value.
func (m *Message) WithMeta(key string, v any) *Message {
	params := m.Fields()
	out := m.With(v, "params", "_meta", key)
	out.ID, out.Renewed, out.fields = m.ID, m.Renewed, params // the id in the spelling of the host
	return out
}

// With returns a copy of a JSON object in which the member at a path of keys is v; see [adapter.SetMember].
func With(object json.RawMessage, v any, path ...string) json.RawMessage {
	raw, is := v.(json.RawMessage)
	if !is {
		raw = Encode(v)
	}
	return adapter.SetMember(object, raw, path...)
}

// Encode returns v as JSON. It panics if v cannot be marshalled.
func Encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
