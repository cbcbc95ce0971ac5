package main

import (
	"encoding/json"
	"strings"
)

// A message is a JSON-RPC message with the fields that the proxy needs. It is passed on as the bytes
// that were received. A line that is not a message, or not even JSON, has none of the fields. One of
// the host is passed on too: the server decides how to complain. For one of the server, see sift.
type message struct {
	raw []byte // without the line ending; never changed

	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	renewed bool // it has been sent again, with a new session

	// about is the id of the host's request that the message belongs to, or "" if the server's
	// transport does not tell.
	about string
}

// readMessage parses line, which it keeps.
func readMessage(line []byte) *message {
	m := new(message)
	if json.Unmarshal(line, m) != nil {
		*m = message{}
	}
	m.raw = line
	return m
}

func (m *message) isRequest() bool      { return m.Method != "" && m.ID != nil }
func (m *message) isNotification() bool { return m.Method != "" && m.ID == nil }
func (m *message) isResponse() bool {
	return m.Method == "" && m.ID != nil && (m.Result != nil || m.Error != nil)
}

// withID returns a copy of the message with another id.
func (m *message) withID(id string) *message {
	out := readMessage(with(m.raw, json.RawMessage(id), "id"))
	out.ID, out.about = json.RawMessage(id), m.about
	return out
}

// find looks up an id or a token and returns its key and its value. The key may be spelled
// differently, such as 1.0 for 1 or "\u00e9" for "é", because the other side may spell an id its own
// way when it sends it back. If nothing is found, find returns id and the zero value.
func find[V any](in map[string]V, id string) (string, V) {
	if v, ok := in[id]; ok {
		return id, v
	}
	for key, v := range in {
		if same(key, id) {
			return key, v
		}
	}
	var none V
	return id, none
}

// isOdd reports whether an id has another, more usual spelling.
func isOdd(id string) bool {
	if strings.HasPrefix(id, `"`) {
		return strings.Contains(id, `\`)
	}
	return strings.ContainsAny(id, ".eE")
}

// same reports whether two ids are equal, however they are spelled.
func same(a, b string) bool { return a == b || (isOdd(a) || isOdd(b)) && sameValue(a, b) }

func sameValue(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	switch x.(type) {
	case string, float64:
		return x == y
	}
	return false
}

// newMessage returns a message made by the proxy. It panics if v cannot be marshalled.
func newMessage(v any) *message {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return readMessage(raw)
}

func notification(method string, params any) *message {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		m["params"] = params
	}
	return newMessage(m)
}

func request(id json.RawMessage, method string, params any) *message {
	m := map[string]any{"jsonrpc": "2.0", "id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	return newMessage(m)
}

func result(id json.RawMessage, v any) *message {
	return newMessage(map[string]any{"jsonrpc": "2.0", "id": id, "result": v})
}

// internalError is JSON-RPC's code for what has gone wrong on this side.
const internalError = -32603

func failure(id json.RawMessage, text string) *message {
	return newMessage(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": internalError, "message": text}})
}

// with returns a copy of a JSON object in which the value at a path is v; objects on the way
// that are not there are made. All other values stay as they were written. What is no object
// stays as it is.
func with(object json.RawMessage, v any, path ...string) json.RawMessage {
	fields := make(map[string]json.RawMessage)
	if object != nil && json.Unmarshal(object, &fields) != nil || fields == nil {
		return object
	}
	if len(path) > 1 {
		fields[path[0]] = with(fields[path[0]], v, path[1:]...)
	} else {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fields[path[0]] = raw
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return raw
}

// without returns a copy of a JSON object in which a field is not there.
func without(object json.RawMessage, field string) json.RawMessage {
	fields := make(map[string]json.RawMessage)
	if json.Unmarshal(object, &fields) != nil || fields[field] == nil {
		return object
	}
	delete(fields, field)
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return raw
}
