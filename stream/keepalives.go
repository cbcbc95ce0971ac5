package stream

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxKeepAlive is the length in bytes of the longest data that is checked for a keep-alive.
const maxKeepAlive = 4 << 10

// isKeepAlive reports whether e only shows that the connection is open. Servers of language models send such events
// in many forms: with the name of a keep-alive, with a type in the data that is such a name, with data that is empty,
// a comment or such a name, and as a chunk of a chat without content.
func isKeepAlive(e Event) bool {
	if isKeepAliveName(e.Name) {
		return true
	}
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0 || data[0] == ':':
		return true
	case len(data) > maxKeepAlive:
		return false
	case (e.Name == "" || e.Name == "message") && saysNothing(data): // any other name has a meaning
		return true
	case data[0] != '{':
		return isKeepAliveName(strings.Trim(string(data), `"`))
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return false
	}
	for _, key := range []string{"type", "event", "message_type", "object", "kind"} {
		var name string
		if raw, ok := object[key]; ok && json.Unmarshal(raw, &name) == nil && isKeepAliveName(name) {
			return true
		}
	}
	choices, chat := object["choices"]
	return chat && isArray(choices) && saysNothing(choices, "index", "role") && saysNothing(object["usage"]) && saysNothing(object["error"])
}

// isKeepAliveName reports whether name, or its part after the last dot, is that of a keep-alive, such as "ping",
// "keep_alive" or "response.heartbeat".
func isKeepAliveName(name string) bool {
	if len(name) > 64 {
		return false
	}
	name = strings.ToLower(strings.TrimSpace(name))
	name = name[strings.LastIndexByte(name, '.')+1:]
	switch strings.NewReplacer("-", "", "_", "", " ", "").Replace(name) {
	case "ping", "pong", "keepalive", "heartbeat", "noop":
		return true
	}
	return false
}

func isArray(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '[' }

// saysNothing reports whether a JSON value is absent, null, an empty string, or an array or object that contains only
// such values. Members of objects whose keys are in without are ignored.
func saysNothing(raw json.RawMessage, without ...string) bool {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == `""`:
		return true
	case raw[0] == '[':
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return false
		}
		for _, v := range all {
			if !saysNothing(v, without...) {
				return false
			}
		}
		return true
	case raw[0] == '{':
		var all map[string]json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return false
		}
		for _, key := range without {
			delete(all, key)
		}
		for _, v := range all {
			if !saysNothing(v, without...) {
				return false
			}
		}
		return true
	}
	return false
}
