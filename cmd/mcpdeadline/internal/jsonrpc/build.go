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
	InternalError  = -32603 // for what has gone wrong on this side
)

// New returns a message made by the proxy. It panics if v cannot be marshalled.
func New(v any) *Message {
	return Parse(Encode(v))
}

// Notification returns a notification; params may be nil.
func Notification(method string, params any) *Message {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	return New(m)
}

// Request returns a request; params may be nil.
func Request(id json.RawMessage, method string, params any) *Message {
	m := map[string]any{"jsonrpc": "2.0", "id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	return New(m)
}

// Result returns the answer with a result.
func Result(id json.RawMessage, v any) *Message {
	return New(map[string]any{"jsonrpc": "2.0", "id": id, "result": v})
}

// Failure returns the answer with an error of this side.
func Failure(id json.RawMessage, text string) *Message {
	return New(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": InternalError, "message": text}})
}

// With returns a copy of a JSON object in which the value at a path is v; see [adapter.SetMember].
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
