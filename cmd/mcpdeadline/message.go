package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tooldeadline/tooldeadline/progress/adapter"
)

// A message is a JSON-RPC message with the fields that the proxy needs. It is passed on as the bytes
// that were received. A line that is not a message, or not even JSON, has none of the fields. For one of the host,
// see refuse, and for one of the server, sift.
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
	// twofold is the error of a message in which readers may find different values for a key of ours.
	// Such a message is not passed on: what the proxy has read is not what the reader would act on.
	twofold error
	// asked is set by read.
	asked *asked
}

// asked has what the proxy reads in the params of the host's messages.
type asked struct {
	Name           string
	Arguments      json.RawMessage
	InputResponses map[string]json.RawMessage
	Task           json.RawMessage
	URI            string          `json:"uri"`
	TaskID         string          `json:"taskId"`
	RequestID      json.RawMessage `json:"requestId"`
	Meta           struct {
		ProgressToken json.RawMessage
		Version       string `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities  struct {
			Extensions map[string]json.RawMessage
		} `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`
}

// read reads the params of a message of the host, once: they may be large. If readers may find different values for a key
// that the proxy goes by, it sets twofold.
func (m *message) read() *asked {
	if m.asked != nil {
		return m.asked
	}
	m.asked = new(asked)
	if len(m.Params) == 0 {
		return m.asked
	}
	var meta json.RawMessage
	var err error
	switch { // their other keys are no business of the proxy
	case m.Method == "tools/call" || m.Method == "notifications/cancelled" || isTaskMethod(m.Method):
		err = adapter.Unmarshal(m.Params, m.asked)
	case m.Method == "resources/read" || m.Method == "prompts/get":
		only := struct {
			Name string
			URI  string          `json:"uri"`
			Meta json.RawMessage `json:"_meta"`
		}{}
		err = adapter.Unmarshal(m.Params, &only)
		m.asked.Name, m.asked.URI, meta = only.Name, only.URI, only.Meta
	default:
		only := struct {
			Meta json.RawMessage `json:"_meta"`
		}{}
		err = adapter.Unmarshal(m.Params, &only)
		meta = only.Meta
	}
	if meta != nil {
		err = cmp.Or(err, adapter.Unmarshal(meta, &m.asked.Meta))
	}
	if m.twofold == nil && errors.As(err, new(*adapter.AmbiguousError)) {
		m.twofold = fmt.Errorf("params: %w", err)
	}
	return m.asked
}

// readMessage parses line, which it keeps.
func readMessage(line []byte) *message {
	m := new(message)
	if err := adapter.Unmarshal(line, m); errors.As(err, new(*adapter.AmbiguousError)) {
		m.twofold = err
	} else if err != nil {
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

// named is find for an id that the other side may have sent back as another type: with SDKs that compare numbers, a
// server that answers "1" to 1 works. SPEC 8.11.
func named[V any](in map[string]V, id string) (string, V) {
	key, v := find(in, id)
	if _, found := in[key]; found {
		return key, v
	}
	for key, v := range in {
		if alike(key, id) {
			return key, v
		}
	}
	return id, v
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

// with returns a copy of a JSON object in which the value at a path is v; see [adapter.SetMember].
func with(object json.RawMessage, v any, path ...string) json.RawMessage {
	raw, is := v.(json.RawMessage)
	if !is {
		raw = encoded(v)
	}
	return adapter.SetMember(object, raw, path...)
}
