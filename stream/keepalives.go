package stream

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxKeepAlive is the length of the longest data that may be that of a keep-alive.
const maxKeepAlive = 4 << 10

// isKeepAlive reports whether e only says that the connection is there. Servers of language models say so in many ways:
// by the name of the event, by the type in its data, by data that is a comment or a word or has nothing in it, and by a
// chunk of a chat in which nothing is said.
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
	case (e.Name == "" || e.Name == "message") && saysNothing(data): // the name of any other says something
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

// isKeepAliveName reports whether a name, or its last part, is that of a keep-alive, such as "ping", "keep_alive" or
// "response.heartbeat".
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

// saysNothing reports whether a JSON value is absent, null, empty, or has only such values, without those of some keys.
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
